// Command prosemeter measures how hard the prose of this repository is to read. It counts four
// habits (see the variable habits) per 1,000 words of comments, Markdown pages, help and messages,
// and fails above a goal for the tree and for each package. `make lint` runs it through .ci/prose.
//
// The figure is a thermometer. The aim is text that a reader new to the field understands
// at the first reading, so a synonym in place of a counted word does not help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

// goal is the highest figure of the tree and of each package, in hits per 1,000 words. net/http has
// 0.8 and Prometheus's client 0.6.
const goal = 2.0

var errAboveGoal = errors.New("prose above its goal: shorten the sentences listed by -v -hits")

func main() {
	verbose := flag.Bool("v", false, "print the figure of each package")
	hits := flag.Bool("hits", false, "print each hit with its file and line")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(),
			"usage: prosemeter [-v] [-hits] [PATH ...]\n\n"+
				"Measures the Go and Markdown files that git tracks below each PATH (default: .).")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *verbose, *hits); err != nil {
		fmt.Fprintln(os.Stderr, "prosemeter:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, paths []string, verbose, hits bool) error {
	names, err := trackedFiles(context.Background(), paths)
	if err != nil {
		return err
	}
	total, packages := count{}, map[string]count{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return err
		}
		for _, passage := range passages(name, text) {
			found := measure(passage.text)
			if hits && found.hits() > 0 {
				_, err := fmt.Fprintf(out, "%s:%d: %s\n", name, passage.line,
					strings.TrimSpace(passage.text))
				if err != nil {
					return err
				}
			}
			total = total.plus(found)
			packages[path.Dir(name)] = packages[path.Dir(name)].plus(found)
		}
	}
	return report(out, total, packages, verbose)
}

// trackedFiles lists the Go and Markdown files that git knows below the paths, new ones included.
func trackedFiles(ctx context.Context, paths []string) ([]string, error) {
	args := []string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}
	for _, p := range paths {
		if strings.HasSuffix(p, ".go") || strings.HasSuffix(p, ".md") {
			args = append(args, p)
			continue
		}
		args = append(args, path.Join(p, "*.go"), path.Join(p, "*.md"))
	}
	if len(paths) == 0 {
		args = append(args, "*.go", "*.md")
	}
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w; run prosemeter inside the repository", err)
	}
	return strings.Fields(string(out)), nil
}
