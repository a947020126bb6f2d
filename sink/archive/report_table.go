package archive

// TableReport is the result of the comparison of a table with the archive.
type TableReport struct {
	Name    string `json:"name"`    // the table's
	Layout  string `json:"layout"`  // minute, hour or day
	Objects int64  `json:"objects"` // of the table that are as the links demand
	Records int64  `json:"records"` // in these

	// These are violations; each counts objects.
	Missing Finding `json:"missing"` // of links that the table's progress covers
	Differ  Finding `json:"differ"`  // with other records than the link's, or in another order
	Foreign Finding `json:"foreign"` // files of no link
	Broken  Finding `json:"broken"`  // shards that are not compared behind a link that is lost

	// Pending counts the links behind the progress without their objects. They are a violation if
	// Complete is set.
	Pending  Finding `json:"pending"`
	Complete bool    `json:"complete,omitempty"`
}

func (t *TableReport) rows() []row {
	return []row{
		{"not in the table", "", &t.Missing, true},
		{"other than the links", "each record is there once, in its own place", &t.Differ, true},
		{"foreign in the table", "", &t.Foreign, true},
		{"broken chains", "", &t.Broken, true},
		{"links not derived yet", "", &t.Pending, t.Complete},
	}
}
