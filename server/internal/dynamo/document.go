package dynamo

// document is a request's JSON, parsed once. Its nodes are in the order of the text, and those
// within an object or a list directly follow it. So no part of a body is parsed twice, and a
// value costs no allocation.
//
// It accepts the same texts as encoding/json and gives them the same meaning (see FuzzDocument):
// of two members with one name the last one counts, bytes that are not UTF-8 become U+FFFD, and
// the depth is limited to 10,000 levels.
//
// A document is valid as long as its body. Its methods return copies, except raw and the names,
// which must not outlive the request.
type document struct {
	text  []byte // the body, followed by the unescaped form of names with escapes
	nodes []node
	room  [24]node // holds the nodes of a small document
}

// node is a value of a document.
type node struct {
	name   span  // of a member
	raw    span  // its JSON, without the space around it
	behind int32 // the index behind this node and all nodes within it
	inner  int32 // the number of its members or elements
	gone   bool  // a member that was taken, or that a later one of the same name replaces
}

// span is text[from:to]. 32 bits are enough for a body, which wire.MaxBody limits; they keep a
// node not much larger than a slice.
type span struct{ from, to int32 }

func (d *document) at(s span) []byte { return d.text[s.from:s.to] }

// drop marks those members of an object as gone that a later one of the same name replaces.
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
