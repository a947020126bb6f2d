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

	// ServerTime, BootID and BootTime are the producer's: see producer.FrozenUnit. Journals of
	// earlier versions lack them.
	ServerTime time.Time
	BootID     string
	BootTime   time.Duration
}

// Fate is the final result of a unit.
type Fate byte

const (
	// Stored is a unit that is in the stream.
	Stored Fate = iota + 1
	// Undelivered is a unit that was refused or given up. Its records are not put again, and
	// Refused returns them.
	Undelivered
	// Again is a unit whose records the producer will freeze into new units.
	Again
)

// SettledUnit is the fate of one unit.
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
