package interop

import "maps"

// answer asks both endpoints and returns the comparable parts of their answers. For reads it joins
// all pages.
func (r *rivals) answer(q request) pair {
	got := r.ask(q.operation, q.body)
	got.ours, got.theirs = got.ours.compared(q), got.theirs.compared(q)
	reads := q.operation == "Query" || q.operation == "Scan"
	if got.ours.code != "" || got.theirs.code != "" || !reads {
		return got
	}
	_, starts := q.body["ExclusiveStartKey"]
	_, indexed := q.body["IndexName"]
	_, parts := q.body["TotalSegments"]
	unordered := indexed || q.operation == "Scan"
	if starts && unordered || parts {
		return pair{} // each endpoint has another order
	}
	return pair{
		r.ours.all(r, q, got.ours).canonical(unordered),
		r.theirs.all(r, q, got.theirs).canonical(unordered),
	}
}

// compared returns the answer without the parts that DynamoDB Local gets wrong. Its transactions
// consume half the capacity, and its pages without items consume none. Its deletions may report
// capacity that the request did not ask for. Its cancelled transactions have reasons with other
// texts.
func (r reply) compared(q request) reply {
	asked := q.body["ReturnConsumedCapacity"]
	empty := r.body["ScannedCount"] == 0.0
	if asked == nil || asked == "NONE" || q.operation == "TransactWriteItems" || empty {
		delete(r.body, "ConsumedCapacity")
	}
	reasons, _ := r.body["CancellationReasons"].([]any)
	for _, one := range reasons {
		if reason, ok := one.(object); ok {
			delete(reason, "Message")
		}
	}
	return r.canonical(false)
}

// all reads the remaining pages and returns all as one. The endpoints may end pages at different
// items.
func (d *dynamo) all(r *rivals, q request, page reply) reply {
	body := maps.Clone(q.body)
	items, _ := page.body["Items"].([]any)
	count, scanned := page.number("Count"), page.number("ScannedCount")
	sum := reply{status: page.status, body: maps.Clone(page.body)}
	if q.body["Limit"] != nil {
		delete(sum.body, "ConsumedCapacity")
	}
	for page.body["LastEvaluatedKey"] != nil {
		body["ExclusiveStartKey"] = page.body["LastEvaluatedKey"]
		var err error
		if page, err = d.ask(r.t.Context(), q.operation, body); err != nil {
			r.t.Fatal(err)
		}
		r.asked++
		if page.code != "" {
			return page
		}
		numbersAsServed(page.body)
		count, scanned = count+page.number("Count"), scanned+page.number("ScannedCount")
		more, _ := page.body["Items"].([]any)
		items = append(items, more...)
	}
	delete(sum.body, "LastEvaluatedKey")
	sum.body["Count"], sum.body["ScannedCount"] = count, scanned
	if sum.body["Items"] != nil {
		sum.body["Items"] = items
	}
	return sum
}
