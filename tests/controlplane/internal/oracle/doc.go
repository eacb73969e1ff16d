// Package oracle runs upstream's scheduling framework and in-tree plugins on a cluster given as API objects, and tells what
// they decide: without an API server, without a network and without waiting.
//
//	objects ─▶ frozen informers ─▶ scheduler.New ─▶ its event handlers fill cache and queue ─▶ snapshot
//	                                                                                             │
//	config ──▶ a second set of profiles, with every plugin instance within reach ────────────────▼
//	                                          PreEnqueue · Filter and Score of every node · SchedulePod · PostFilter · hints
//
// Every verdict, score, reason and hint comes from upstream's code. What is ours is glue: objects are handed to the informers
// at once, the framework is called node by node, and results are written down. No cycle changes what the next one sees:
// nothing is bound, what is reserved is given back, and writes go to a client that accepts and forgets them.
package oracle
