package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// create makes a stream of this run and returns the answer of CreateStream. Even after an error
// the stream is deleted at the end of the run.
func (c *check) create(of string, in object) (string, *answer) {
	name := c.name(of)
	c.mu.Lock()
	if !slices.Contains(c.created, name) {
		c.created = append(c.created, name)
	}
	c.mu.Unlock()
	return name, c.call("CreateStream", in.with(object{"StreamName": name}))
}

// stream makes a stream of this run, waits until it is ACTIVE and returns its name.
func (c *check) stream(of string, in object) string {
	release := c.mayCreate()
	defer release()
	name, created := c.create(of, in)
	c.succeeded("CreateStream", created)
	c.active(name)
	return name
}

// mayCreate waits until fewer than maxCreating streams are being created.
func (c *check) mayCreate() (release func()) {
	select {
	case c.creating <- struct{}{}:
		return func() { <-c.creating }
	case <-c.ctx.Done():
		panic(skipped{"interrupted"})
	}
}

// active waits until a stream is ACTIVE.
func (c *check) active(name string) {
	c.eventually(name+" becomes ACTIVE", func() bool {
		a := c.call("DescribeStreamSummary", object{"StreamName": name})
		c.succeeded("DescribeStreamSummary", a)
		return a.value.text("StreamDescriptionSummary.StreamStatus") == "ACTIVE"
	})
}

// gone waits until the stream does not exist.
func (c *check) gone(name string) {
	c.eventually(name+" is deleted", func() bool {
		a := c.call("DescribeStreamSummary", object{"StreamName": name})
		return a.code() == "ResourceNotFoundException"
	})
}

// describe returns a stream's StreamDescription.
func (c *check) describe(name string) object {
	description := c.ok("DescribeStream", object{"StreamName": name}).at("StreamDescription")
	o, ok := description.(map[string]any)
	c.want(ok, "a StreamDescription", description)
	return o
}

// summary returns a stream's StreamDescriptionSummary.
func (c *check) summary(name string) object {
	summary := c.ok("DescribeStreamSummary", object{"StreamName": name}).
		at("StreamDescriptionSummary")
	o, ok := summary.(map[string]any)
	c.want(ok, "a StreamDescriptionSummary", summary)
	return o
}

// deleteStreams deletes the streams of this run and returns the remaining ones.
func (k *kit) deleteStreams(ctx context.Context) (left []string) {
	k.mu.Lock()
	names := slices.Clone(k.created)
	k.mu.Unlock()
	todo := map[string]bool{}
	for _, name := range names {
		todo[name] = true
	}
	for len(todo) > 0 && ctx.Err() == nil && k.reachable(ctx) {
		for _, name := range slices.Sorted(maps.Keys(todo)) {
			if k.deleted(ctx, name) {
				delete(todo, name)
			}
		}
		if len(todo) == 0 {
			break
		}
		timer := time.NewTimer(k.poll())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return slices.Sorted(maps.Keys(todo))
}

// reachable reports whether the endpoint answers one of three calls.
func (k *kit) reachable(ctx context.Context) bool {
	for range 3 {
		if _, err := k.send(ctx, jsonRequest("ListStreams", object{})); err == nil {
			return true
		}
		timer := time.NewTimer(100 * k.poll())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	return false
}

// deleted calls DeleteStream and reports whether the stream is absent or DELETING. DELETING is
// enough, since AWS completes the deletion by itself.
func (k *kit) deleted(ctx context.Context, name string) bool {
	a, err := k.call(ctx, "DeleteStream", object{
		"StreamName": name, "EnforceConsumerDeletion": true,
	})
	if err != nil {
		return false
	}
	if a.code() == "ResourceInUseException" {
		// The stream is UPDATING, CREATING or DELETING; only the last one counts as deleted.
		a, err = k.call(ctx, "DescribeStreamSummary", object{"StreamName": name})
		return err == nil &&
			a.value.text("StreamDescriptionSummary.StreamStatus") == "DELETING"
	}
	return a.status == 200 || a.code() == "ResourceNotFoundException"
}

// leftBehind returns a message with the commands that delete the remaining streams.
func leftBehind(names []string, region string) string {
	text := fmt.Sprintf("%d streams could not be deleted; delete them by hand:", len(names))
	for _, name := range names {
		text += fmt.Sprintf("\n  aws kinesis delete-stream --region %s --enforce-consumer-deletion"+
			" --stream-name %s", region, name)
	}
	return text
}
