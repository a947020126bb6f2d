package itemstore

import "fmt"

// Refused is a change of a log frame that a repair could not apply.
type Refused struct {
	Table string // its name, or its number if there is no such table
	Key   string // of the item; "" for a change of a table
	Err   error
}

// Salvage is Replay for a repair: it applies every change of a whole frame that fits the state, and
// returns the others. A change does not fit if the frame that made its table is lost.
func (s *Store) Salvage(payload []byte) []Refused {
	var refused []Refused
	err := decodeFrame(payload, func(c change) error {
		if err := s.apply(c); err != nil {
			refused = append(refused, s.refused(c, err))
		}
		return nil
	})
	if err != nil {
		refused = append(refused, Refused{Err: err})
	}
	return refused
}

func (s *Store) refused(c change, err error) Refused {
	r := Refused{Table: fmt.Sprintf("number %d", c.table), Err: err}
	s.mu.RLock()
	if t := s.mu.byID[c.table]; t != nil {
		t.mu.RLock()
		r.Table = t.mu.meta.Name
		t.mu.RUnlock()
	}
	s.mu.RUnlock()
	switch c.op {
	case changeCreate, changeAlter:
		r.Table = c.meta.Name
	case changePut:
		r.Key = fmt.Sprint(c.item)
	case changeDelete:
		r.Key = fmt.Sprint(c.key)
	}
	return r
}
