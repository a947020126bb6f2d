package backup

import (
	"fmt"
	"io"
)

// WriteText prints the report in a line.
func (r *Report) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "backup of %s in %s: %d files, %.1f MiB, up to log position %d\n",
		r.Dir, r.To, r.Files, float64(r.Bytes)/(1<<20), r.Position)
	return err
}
