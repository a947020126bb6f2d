package fsck

// Report is the result of a check.
type Report struct {
	OK     bool   `json:"ok"`
	Dir    string `json:"dir"`
	Format int    `json:"format"`
	Bytes  int64  `json:"bytes"` // of everything that the server keeps there

	Snapshot Snapshot `json:"snapshot"`
	Log      Log      `json:"log"`
	Records  Records  `json:"records"`
	Items    Items    `json:"items"`
	// Clock says whether the clock's file can be read. An unreadable one is no damage: the next
	// start takes the time of the newest record.
	Clock   bool     `json:"clock"`
	Streams []Stream `json:"streams"`
	Tables  []Table  `json:"tables"`

	Damage   []Damage `json:"damage"`
	Leftover []string `json:"leftover"` // the next start removes them
	Foreign  []string `json:"foreign"`  // not of the server: left alone
	// Lists are the files with the losses of earlier repairs.
	Lists []string `json:"lists,omitempty"`
}

// Snapshot is the newest snapshot.
type Snapshot struct {
	File     string `json:"file,omitempty"`
	Position uint64 `json:"position"`
	Bytes    int64  `json:"bytes"`
}

// Log is the write-ahead log.
type Log struct {
	Files  int    `json:"files"`
	Spares int    `json:"spares"`           // of them: kept to be used again
	Newest string `json:"newest,omitempty"` // the file in which the log ends
	// Lossy means that the last server did not end in order, and synced at intervals or was of
	// format 3 or before: the next start skips sequence numbers.
	Lossy  bool   `json:"lossy,omitempty"`
	Bytes  int64  `json:"bytes"`
	Frames int    `json:"frames"` // after the snapshot, with marks
	Marks  int    `json:"marks"`
	End    uint64 `json:"end"`
	// Unsynced is the number of bytes at the end that were written, and perhaps not synced: they
	// may never have been acknowledged, and they stay.
	Unsynced uint64 `json:"unsynced"`
	Torn     *Torn  `json:"torn,omitempty"`
}

// Torn is a frame that was only partly written when the server ended.
type Torn struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int    `json:"bytes"`
}

// Records holds the segments of all shards together.
type Records struct {
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Count    uint64 `json:"count"`          // visible ones
	InLog    int    `json:"inLog"`          // of them: the next start moves these into segments
	Lost     uint64 `json:"lost,omitempty"` // besides: those that an earlier repair found lost
}

// Items holds the data files of the tables. Items of small tables are in the snapshot instead.
type Items struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Stream is a stream of the catalogue.
type Stream struct {
	Account string  `json:"account"`
	Region  string  `json:"region"`
	Name    string  `json:"name"`
	Shards  []Shard `json:"shards"`
}

// Shard is a shard of a stream.
type Shard struct {
	ShardID  string `json:"shardId"`
	Folder   string `json:"folder"`
	Open     bool   `json:"open"`
	Oldest   uint64 `json:"oldest"` // the visible records have the indexes [oldest, next)
	Next     uint64 `json:"next"`
	InLog    int    `json:"inLog"`
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Lost     uint64 `json:"lost,omitempty"`  // of these, by an earlier repair
	Skips    int    `json:"skips,omitempty"` // the number of jumps in its sequence numbers
}

// Table is a table of items.
type Table struct {
	Account string `json:"account"`
	Region  string `json:"region"`
	Name    string `json:"name"`
	Items   int64  `json:"items"`
	Bytes   int64  `json:"bytes"`
}

// Damage is one deviation from the written state.
type Damage struct {
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
	Lost   string `json:"lost"` // the consequence
}
