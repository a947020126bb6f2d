package fsck

import (
	"fmt"
	"io"
	"strings"
)

const maxListed = 10 // leftover and foreign files in the text

// WriteText explains the report in plain sentences.
func (r *Report) WriteText(w io.Writer) error {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	if r.Format > 0 {
		r.writeFiles(say)
		r.writeClock(say)
		r.writeContent(say)
	}
	list := func(files []string, what string) {
		if len(files) == 0 {
			return
		}
		say("%s %s:", plural(len(files), "file or folder", "files or folders"), what)
		for i, file := range files {
			if i == maxListed {
				say("  and %d more", len(files)-maxListed)
				break
			}
			say("  %s", file)
		}
	}
	list(r.Leftover, "without use; the next start of a server removes or replaces them")
	list(r.Foreign, "not of the server; it leaves them alone")
	for _, d := range r.Damage {
		where := ""
		if d.File != "" {
			where = fmt.Sprintf("%s, byte %d: ", d.File, d.Offset)
		}
		say("damaged: %s%s", where, d.What)
		say("         lost: %s", d.Lost)
	}
	switch {
	case !r.OK:
		say("damaged: %s: runnel fsck %s --repair shows what a repair would save",
			plural(len(r.Damage), "finding", "findings"), r.Dir)
	case len(r.Lists) > 0:
		say("sound: everything is there but the losses of an earlier repair, which %s lists",
			strings.Join(r.Lists, ", "))
	case r.Log.Lossy:
		say("sound: everything that was synced is there; with --sync interval the last " +
			"acknowledged records may be lost")
	default:
		say("sound: everything that was acknowledged is there")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *Report) writeFiles(say func(format string, args ...any)) {
	say("%s has format %d and takes %s.", r.Dir, r.Format, size(r.Bytes))
	if r.Snapshot.File == "" {
		say("snapshot: none yet")
	} else {
		say("snapshot: at log position %d, %s", r.Snapshot.Position, size(r.Snapshot.Bytes))
	}
	say("log: %s (%d spare), %s; %s after the snapshot, to log position %d",
		plural(r.Log.Files, "file", "files"), r.Log.Spares, size(r.Log.Bytes),
		plural(r.Log.Frames, "frame", "frames"), r.Log.End)
	if r.Log.Unsynced > 0 {
		say("  the last %s were written and perhaps not synced when the server ended: they "+
			"are whole, and stay", size(int64(r.Log.Unsynced)))
	}
	if r.Log.Lossy {
		say("  the last server synced at intervals and did not end in order, or this is a copy " +
			"by runnel backup: the next start skips sequence numbers")
	}
	if t := r.Log.Torn; t != nil {
		say("  a frame of %s at byte %d of %s is not whole: it was being written when the server "+
			"ended, nobody was told that it is there, and the next start cuts it off",
			size(int64(t.Bytes)), t.Offset, t.File)
	}
	say("records: %d in %s, %s", r.Records.Count,
		plural(r.Records.Segments, "segment", "segments"), size(r.Records.Bytes))
	if r.Records.Lost > 0 {
		say("  %s lost, which an earlier repair has listed in %s",
			plural(int(r.Records.Lost), "record is", "records are"), "lost-….json")
	}
	if r.Records.InLog > 0 {
		say("  %d of them are known from the log alone, and the next start writes them to segments",
			r.Records.InLog)
	}
	if r.Items.Files > 0 {
		say("items: in %s, %s", plural(r.Items.Files, "file", "files"), size(r.Items.Bytes))
	}
}

func (r *Report) writeClock(say func(format string, args ...any)) {
	if !r.Clock {
		say("clock: its file is not there or cannot be read; the next start takes the time of " +
			"the newest record")
	}
}

func (r *Report) writeContent(say func(format string, args ...any)) {
	for _, st := range r.Streams {
		say("stream %s (%s, %s): %s", st.Name, st.Account, st.Region,
			plural(len(st.Shards), "shard", "shards"))
		for _, sh := range st.Shards {
			state := "open"
			if !sh.Open {
				state = "closed"
			}
			skips := ""
			if sh.Skips > 0 {
				skips = "; its sequence numbers have skipped ahead " +
					plural(sh.Skips, "time", "times")
			}
			say("  %s, %s, folder shards/%s: %s, indexes %d to %d; %s, %s%s", sh.ShardID, state,
				sh.Folder, plural(int(sh.Next-sh.Oldest-sh.Lost), "record", "records"), sh.Oldest,
				sh.Next-1, plural(sh.Segments, "segment", "segments"), size(sh.Bytes), skips)
		}
	}
	for _, t := range r.Tables {
		say("table %s (%s, %s): %s, %s", t.Name, t.Account, t.Region,
			plural(int(t.Items), "item", "items"), size(t.Bytes))
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size formats a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
}
