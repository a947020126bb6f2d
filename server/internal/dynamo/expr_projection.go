package dynamo

// projection is the part of an item that an answer shows; nil shows all.
type projection = pathTree[struct{}]

// parseProjection parses a ProjectionExpression: paths with commas between them.
func parseProjection(text string, ph *placeholders) (*projection, error) {
	return parse(projectionExpression, text, ph, (*parser).projection)
}

func (p *parser) projection() *projection {
	tree := new(projection)
	for {
		at := p.path()
		if p.fault == "" {
			if message := tree.add(at, struct{}{}); message != "" {
				p.fail("%s", message)
			}
		}
		if !p.accept(",") {
			return tree
		}
	}
}
