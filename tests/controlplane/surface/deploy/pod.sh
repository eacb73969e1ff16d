# What a kubelet and a container runtime make of a container, as far as its process sees it: a file system of its own that cannot
# be written to but for one folder, a user without capabilities, and no way to more.
#
#   unshare --mount sh pod.sh ROOT PROGRAM USER TMP COMMAND...
set -eu
root=$1 program=$2 user=$3 tmp=$4
shift 4
mount --bind "$root" "$root"
# Libraries, for a program that is not static.
for folder in lib lib64 usr/lib; do
  [ -d "/$folder" ] || continue
  mkdir -p "$root/$folder"
  mount --rbind "/$folder" "$root/$folder"
done
mkdir -p "$root/proc" "$root/dev" "$root/usr/local/bin" "$root$tmp"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
touch "$root/usr/local/bin/kube-scheduler" "$root/.setpriv"
mount --bind "$program" "$root/usr/local/bin/kube-scheduler"
mount --bind "$(command -v setpriv)" "$root/.setpriv"
mount -t tmpfs -o mode=1777 tmpfs "$root$tmp"
mount -o remount,bind,ro "$root"
# Only root can become another user; anybody else is one without rights already.
become=
[ -z "$user" ] || become="--reuid=$user --regid=$user --clear-groups"
chroot=$(command -v chroot)
# As the image has it.
export PATH=/usr/local/bin
exec "$chroot" "$root" /.setpriv $become --no-new-privs --inh-caps=-all --bounding-set=-all "$@"
