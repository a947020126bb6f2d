package backup

import (
	"errors"
	"fmt"
	"io"
)

// WriteText prints the report in a line.
func (r *Report) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "backup of %s in %s: %d files, %.1f MiB, up to log position %d\n",
		r.Dir, r.To, r.Files, float64(r.Bytes)/(1<<20), r.Position)
	for _, d := range r.Damage {
		_, failed := fmt.Fprintf(w, "damaged: %s, byte %d: %s\n  lost: %s\n",
			d.File, d.Offset, d.What, d.Lost)
		err = errors.Join(err, failed)
	}
	if !r.Checked {
		_, failed := fmt.Fprintln(w, "not checked, since a server uses the directory: "+
			"unpack the copy and run runnel fsck on it")
		err = errors.Join(err, failed)
	}
	return err
}
