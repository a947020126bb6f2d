package putlog

import (
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// FrozenUnit is a unit as it is sent, and sent again as the same bytes.
type FrozenUnit struct {
	Unit            aggregate.Unit
	PartitionKey    string
	ExplicitHashKey string // "" if none
	Data            []byte
	Marks           []uint64 // of the records that it holds
	FrozenAt        time.Time

	// ServerTime, BootID and BootTime are the producer's: see producer.FrozenUnit. States that
	// were written before there were any have none.
	ServerTime time.Time
	BootID     string
	BootTime   time.Duration
}

// Fate is what became of a unit.
type Fate byte

const (
	// Stored is a unit that is in the stream.
	Stored Fate = iota + 1
	// Undelivered is a unit that was refused or given up: its records are not put again, and are
	// among the Refused.
	Undelivered
	// Again is a unit whose records will be frozen anew.
	Again
)

// SettledUnit tells a unit's fate.
type SettledUnit struct {
	Producer aggregate.ProducerID
	Number   uint64
	Fate     Fate
	Reason   string // of Undelivered
}

type unitID struct {
	producer aggregate.ProducerID
	number   uint64
}

func (u FrozenUnit) id() unitID  { return unitID{u.Unit.Producer, u.Unit.Number} }
func (u SettledUnit) id() unitID { return unitID{u.Producer, u.Number} }
