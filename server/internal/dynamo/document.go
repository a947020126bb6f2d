package dynamo

// document is a request's JSON, read once: all of its values in the order of the text, those
// within an object or a list right behind it. So no part of a body is looked at twice, and
// nothing is allocated for a value.
//
// It takes the texts that encoding/json takes, and reads them as encoding/json does (see
// FuzzDocument): of two members of one name the last one counts, what is not UTF-8 becomes
// U+FFFD, and 10,000 levels are the most.
//
// A document is valid as long as the body that it was read from. What the values return is
// copied out of it, but for raw and the names, which must not outlive the request.
type document struct {
	text  []byte // the body, and behind it those names that have escapes, without them
	nodes []node
	room  [24]node // where the nodes of a small document stand
}

// node is a value of a document.
type node struct {
	name   span  // of a member
	raw    span  // its JSON, without the space around it
	behind int32 // the node behind this one and all that is within it
	inner  int32 // how many members or elements it has
	gone   bool  // a member that was taken, or of a name that a later one has too
}

// span is text[from:to]. 32 bits are enough for a body, which wire.MaxBody bounds; a node then
// is not much larger than a slice.
type span struct{ from, to int32 }

func (d *document) at(s span) []byte { return d.text[s.from:s.to] }

// drop marks those members of an object as gone whose name a later one has too.
func (d *document) drop(object int32) {
	const few = 16
	o := d.nodes[object]
	if o.inner > few {
		d.dropOfMany(object)
		return
	}
	for i := object + 1; i < o.behind; i = d.nodes[i].behind {
		name := d.at(d.nodes[i].name)
		for later := d.nodes[i].behind; later < o.behind; later = d.nodes[later].behind {
			if string(d.at(d.nodes[later].name)) == string(name) {
				d.nodes[i].gone = true
				break
			}
		}
	}
}

func (d *document) dropOfMany(object int32) {
	o := d.nodes[object]
	last := make(map[string]int32, o.inner)
	for i := object + 1; i < o.behind; i = d.nodes[i].behind {
		name := string(d.at(d.nodes[i].name))
		if earlier, twice := last[name]; twice {
			d.nodes[earlier].gone = true
		}
		last[name] = i
	}
}
