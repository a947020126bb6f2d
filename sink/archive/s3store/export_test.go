package s3store

// SetPage sets the number of names that a call of After returns at most.
func (s *Store) SetPage(names int32) { s.page = &names }
