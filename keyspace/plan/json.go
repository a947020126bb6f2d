package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// rangeText is a range in the form of the API: as decimal texts, because a JSON number does not
// hold 128 bits.
type rangeText struct {
	Start string `json:"startingHashKey"`
	End   string `json:"endingHashKey"`
}

type stepText struct {
	Kind   StepKind    `json:"kind"`
	From   []rangeText `json:"from,omitempty"`
	To     []rangeText `json:"to,omitempty"`
	Shards int         `json:"shards,omitempty"`
}

type shardText struct {
	rangeText
	Load uint64 `json:"load"`
}

type pointText struct {
	At     string `json:"hashKey"`
	Weight uint64 `json:"load"`
}

type planText struct {
	Open   []rangeText `json:"open"`
	Steps  []stepText  `json:"steps"`
	Final  []shardText `json:"final"`
	TooHot []pointText `json:"tooHot,omitempty"`
}

// MarshalJSON writes the plan, with hash keys as decimal texts:
//
//	{"open": [{"startingHashKey", "endingHashKey"}…],
//	 "steps": [{"kind": "split" or "merge", "from": [range…], "to": [range…]}…],
//	 "final": [{"startingHashKey", "endingHashKey", "load"}…],
//	 "tooHot": [{"hashKey", "load"}…]}
//
// A scaling is {"kind": "scale", "shards": n}.
func (p Plan) MarshalJSON() ([]byte, error) {
	text := planText{Open: rangeTexts(p.Open), Steps: []stepText{}, Final: []shardText{}}
	for _, s := range p.Steps {
		text.Steps = append(text.Steps, stepText{
			Kind: s.Kind, From: rangeTexts(s.From), To: rangeTexts(s.To), Shards: s.Shards,
		})
	}
	for _, s := range p.Final {
		text.Final = append(text.Final,
			shardText{rangeText: rangeTexts([]keyspace.Range{s.Range})[0], Load: s.Load})
	}
	for _, point := range p.TooHot {
		text.TooHot = append(text.TooHot, pointText{point.At.String(), point.Load()})
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads the text of MarshalJSON. It refuses unknown members and every plan that
// Validate refuses, and then leaves p as it was.
func (p *Plan) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var text planText
	if err := decoder.Decode(&text); err != nil {
		return fmt.Errorf("a plan of shards: %w", err)
	}
	var plan Plan
	var err error
	key := func(text string) keyspace.Key {
		k, wrong := keyspace.Parse(text)
		if err == nil {
			err = wrong
		}
		return k
	}
	read := func(r rangeText) keyspace.Range {
		return keyspace.Range{Start: key(r.Start), End: key(r.End)}
	}
	reads := func(texts []rangeText) (ranges []keyspace.Range) {
		for _, r := range texts {
			ranges = append(ranges, read(r))
		}
		return ranges
	}
	plan.Open = reads(text.Open)
	for _, s := range text.Steps {
		plan.Steps = append(plan.Steps, Step{
			Kind: s.Kind, From: reads(s.From), To: reads(s.To), Shards: s.Shards,
		})
	}
	for _, s := range text.Final {
		plan.Final = append(plan.Final, Shard{Range: read(s.rangeText), Load: s.Load})
	}
	for _, point := range text.TooHot {
		plan.TooHot = append(plan.TooHot, load.Point{At: key(point.At), Weight: point.Weight})
	}
	if err == nil {
		err = plan.Validate()
	}
	if err != nil {
		return fmt.Errorf("a plan of shards: %w", err)
	}
	*p = plan
	return nil
}

func rangeTexts(ranges []keyspace.Range) []rangeText {
	texts := make([]rangeText, len(ranges))
	for i, r := range ranges {
		texts[i] = rangeText{Start: r.Start.String(), End: r.End.String()}
	}
	return texts
}
