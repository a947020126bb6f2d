package fsck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// RepairReport is the result of a repair, or of its dry run.
type RepairReport struct {
	OK    bool   `json:"ok"`    // the directory is sound now
	Whole bool   `json:"whole"` // nothing was damaged
	Dir   string `json:"dir"`
	// Written is false if nothing was damaged, the repair was refused, or it was only to be shown.
	Written bool `json:"written"`
	// Refused is the reason if nothing can be repaired.
	Refused string   `json:"refused,omitempty"`
	Damage  []Damage `json:"damage"`
	Lost    []Loss   `json:"lost"`
	Saved   []Saved  `json:"saved,omitempty"` // records of lost streams, each shard in a new stream
	List    string   `json:"list,omitempty"`  // the file with the losses
}

// Saved is a shard without a stream: the change that made it is lost. Its whole records are in a
// new stream of one shard.
type Saved struct {
	Folder  string `json:"folder"`
	Records uint64 `json:"records"`
	Account string `json:"account"`
	Region  string `json:"region"`
	Stream  string `json:"stream"`
}

// loss is the size of all losses.
type loss struct {
	others  int // than records: a shard without its stream's name is one
	records uint64
}

func (l loss) below(other loss) bool {
	return l.others < other.others || l.others == other.others && l.records < other.records
}

func (r *RepairReport) loss() (sum loss) {
	sum.others = len(r.Saved)
	for _, each := range r.Lost {
		if each.To > each.From {
			sum.records += each.To - each.From
		} else {
			sum.others++
		}
	}
	return sum
}

// The kinds of losses.
const (
	LossRecords = "records"
	LossStreams = "streams" // the state of the catalogue
	LossItems   = "items"
	LossUnknown = "unknown"
)

// Loss is one thing that a repair cannot save.
type Loss struct {
	Kind string `json:"kind"`
	What string `json:"what"`

	// Lost records have the indexes [From, To) in their shard. They lie between After and Before,
	// the whole records before and behind them; nil if there is none.
	Account string     `json:"account,omitempty"`
	Region  string     `json:"region,omitempty"`
	Stream  string     `json:"stream,omitempty"`
	ShardID string     `json:"shardId,omitempty"`
	Folder  string     `json:"folder,omitempty"`
	From    uint64     `json:"from,omitempty"`
	To      uint64     `json:"to,omitempty"`
	After   *Neighbour `json:"after,omitempty"`
	Before  *Neighbour `json:"before,omitempty"`

	Table string `json:"table,omitempty"`
	Key   string `json:"key,omitempty"`

	// File, Offset and Position give the place of a lost frame in the log, or without Position a
	// lost part of a file of items.
	File     string `json:"file,omitempty"`
	Offset   int64  `json:"offset,omitempty"`
	Position uint64 `json:"position,omitempty"`
}

// Neighbour is a whole record beside lost ones.
type Neighbour struct {
	Index          uint64 `json:"index"`
	Arrival        string `json:"arrival"`
	SequenceNumber string `json:"sequenceNumber,omitempty"`
}

func (n *Neighbour) String() string {
	if n.SequenceNumber == "" {
		return n.Arrival
	}
	return n.SequenceNumber + " of " + n.Arrival
}

func (l Loss) String() string {
	switch {
	case l.To > l.From:
		where := l.Stream + " " + l.ShardID
		if l.Stream == "" {
			where = "shard folder " + l.Folder
		}
		when := ""
		if l.After != nil {
			when += ", after " + l.After.String()
		}
		if l.Before != nil {
			when += ", before " + l.Before.String()
		}
		return fmt.Sprintf("%s of %s, the indexes %d to %d%s: %s",
			plural(int(l.To-l.From), "record", "records"), where, l.From, l.To-1, when, l.What)
	case l.Table != "":
		return fmt.Sprintf("table %s, item %s: %s", l.Table, l.Key, l.What)
	case l.Kind == LossItems && l.File != "" && l.Position == 0:
		return fmt.Sprintf("%s, byte %d: %s", l.File, l.Offset, l.What)
	case l.Position > 0:
		return fmt.Sprintf("at log position %d: %s", l.Position, l.What)
	}
	return l.What
}

const (
	listPrefix = "lost-"
	listSuffix = ".json"
)

// isLossList reports whether a file's name is that of a list of losses.
func isLossList(name string) bool {
	return strings.HasPrefix(name, listPrefix) && strings.HasSuffix(name, listSuffix)
}

// writeLosses writes the list of losses, durably, and returns its name; "" without any. The name
// holds the end of the log. A repair that is repeated after a crash writes the same file again, and
// never replaces another list.
func (r *repairer) writeLosses() (string, error) {
	if len(r.report.Lost) == 0 {
		return "", nil
	}
	text, err := json.MarshalIndent(r.report.Lost, "", "  ")
	if err != nil {
		return "", err
	}
	text = append(text, '\n')
	for n := 1; ; n++ {
		name := path.Join(r.report.Dir,
			fmt.Sprintf("%s%020d-%d%s", listPrefix, r.found.End, n, listSuffix))
		old, err := r.content(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, r.put(name, text)
		case err != nil:
			return "", err
		case bytes.Equal(old, text):
			return name, nil
		}
	}
}

func (r *repairer) content(name string) ([]byte, error) {
	file, err := r.fs.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	p := make([]byte, size)
	if err == nil {
		if _, err = file.ReadAt(p, 0); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return p, errors.Join(err, file.Close())
}

func (r *repairer) put(name string, text []byte) error {
	file, err := r.fs.Create(name + ".tmp")
	if err != nil {
		return err
	}
	if _, err = file.WriteAt(text, 0); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = r.fs.Rename(name+".tmp", name)
	}
	if err != nil {
		return errors.Join(err, r.fs.Remove(name+".tmp"))
	}
	return r.fs.SyncDir(r.report.Dir)
}

// WriteText explains the report in plain sentences.
func (r *RepairReport) WriteText(w io.Writer) error {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	for _, d := range r.Damage {
		where := ""
		if d.File != "" {
			where = fmt.Sprintf("%s, byte %d: ", d.File, d.Offset)
		}
		say("damaged: %s%s", where, d.What)
	}
	for _, loss := range r.Lost {
		say("lost: %s", loss)
	}
	for _, saved := range r.Saved {
		say("saved: %s of shard folder %s, of a lost stream, in the stream %s of account %s "+
			"and region %s", plural(int(saved.Records), "record", "records"), saved.Folder,
			saved.Stream, saved.Account, saved.Region)
	}
	switch {
	case r.Whole:
		say("sound: there is nothing to repair in %s", r.Dir)
	case r.Refused != "":
		say("not repaired: %s", r.Refused)
	case !r.Written && len(r.Lost) == 0:
		say("a repair would lose nothing; nothing was changed: --yes repairs %s", r.Dir)
	case !r.Written:
		say("a repair would save everything else; nothing was changed: --yes repairs %s", r.Dir)
	case len(r.Lost) == 0:
		say("repaired: nothing is lost")
	default:
		say("repaired: everything else is there; the losses are listed in %s", r.List)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
