// The symbols command looks up citations of upstream's sources in the modules that this module pins.
//
// Standard input has one citation a line, `path` or `path#Symbol`. Standard output has a line for each citation that does not
// resolve, with the reason. The command runs in a folder of the module.
//
// A path is that of a file or a folder in one of these:
//
//   - the repository of Kubernetes: `pkg/…`, `cmd/…`, `plugin/…`;
//   - a module of `k8s.io`, without that prefix: `client-go/…`, `kube-scheduler/…`;
//   - any other module, by its whole path: `golang.org/x/net/…`;
//   - Go's standard library: `net/http/…`.
//
// A symbol is a function, type, constant or variable of the file, or `Type.Member` with a method or a field. A method or field
// that only one type of the file has may stand alone.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	sources, err := findSources()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		path, symbol, _ := strings.Cut(lines.Text(), "#")
		if err := sources.resolve(path, symbol); err != nil {
			fmt.Printf("%s: %v\n", lines.Text(), err)
		}
	}
	return lines.Err()
}

// sources has the folders of modules, and the symbols of the files that were read.
type sources struct {
	modules map[string]string
	goRoot  string
	files   map[string]map[string]int
}

func findSources() (*sources, error) {
	// Modules that the build does not need are not downloaded yet, and have no folder then.
	list, err := output("list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	goRoot, err := output("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	found := &sources{modules: map[string]string{}, goRoot: strings.TrimSpace(goRoot), files: map[string]map[string]int{}}
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		path, folder, _ := strings.Cut(line, "\t")
		found.modules[path] = folder
	}
	return found, nil
}

func output(arguments ...string) (string, error) {
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(arguments, " "), err)
	}
	return string(text), nil
}

func (s *sources) resolve(path, symbol string) error {
	file, err := s.locate(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("no such file in its module")
	}
	if symbol == "" {
		return nil
	}
	if info.IsDir() {
		return fmt.Errorf("a folder has no symbols")
	}
	symbols, ok := s.files[file]
	if !ok {
		if symbols, err = read(file); err != nil {
			return err
		}
		s.files[file] = symbols
	}
	switch symbols[symbol] {
	case 0:
		return fmt.Errorf("no such symbol in the file")
	case 1:
		return nil
	}
	return fmt.Errorf("several types of the file have it")
}

// locate returns where the file would be, which need not exist.
func (s *sources) locate(path string) (string, error) {
	first, _, _ := strings.Cut(path, "/")
	switch first {
	case "pkg", "cmd", "plugin":
		return s.within("k8s.io/kubernetes", path)
	}
	if _, ok := s.modules["k8s.io/"+first]; ok {
		return s.within("k8s.io/"+first, strings.TrimPrefix(path, first+"/"))
	}
	for end := len(path); end > 0; end = strings.LastIndex(path[:end], "/") {
		if _, ok := s.modules[path[:end]]; ok {
			return s.within(path[:end], strings.TrimPrefix(path[end:], "/"))
		}
	}
	return filepath.Join(s.goRoot, "src", path), nil
}

func (s *sources) within(module, path string) (string, error) {
	folder := s.modules[module]
	if folder == "" {
		text, err := output("mod", "download", module)
		if err != nil {
			return "", fmt.Errorf("module %s: %w%s", module, err, text)
		}
		text, err = output("list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return "", err
		}
		folder = strings.TrimSpace(text)
		s.modules[module] = folder
	}
	return filepath.Join(folder, path), nil
}

// read returns the symbols that a file declares, and how many declarations each can stand for.
func read(path string) (map[string]int, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	symbols, members := map[string]int{}, map[string]int{}
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if declaration.Recv == nil {
				symbols[declaration.Name.Name] = 1
				continue
			}
			symbols[typeName(declaration.Recv.List[0].Type)+"."+declaration.Name.Name] = 1
			members[declaration.Name.Name]++
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				add(symbols, members, spec)
			}
		}
	}
	for name, count := range members {
		if symbols[name] == 0 {
			symbols[name] = count
		}
	}
	return symbols, nil
}

func add(symbols, members map[string]int, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			symbols[name.Name] = 1
		}
	case *ast.TypeSpec:
		symbols[spec.Name.Name] = 1
		var list *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			list = of.Fields
		case *ast.InterfaceType:
			list = of.Methods
		default:
			return
		}
		for _, member := range list.List {
			for _, name := range member.Names {
				symbols[spec.Name.Name+"."+name.Name] = 1
				members[name.Name]++
			}
		}
	}
}

// typeName returns the name of a receiver's type, without the pointer and type parameters.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.IndexListExpr:
		return typeName(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
