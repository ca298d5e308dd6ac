package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// warmTimeout bounds the wait until a body is answered from the cache: it may be
// stored a moment after the client has it.
const warmTimeout = 10 * time.Second

// warm fetches a body from a server until it is answered without the origin, and
// compares each answer byte for byte. What is measured afterwards are hits.
func warm(ctx context.Context, s *server, o *origin, b bodies, size int) error {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // our own, on loopback
		ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for fetches := 1; ; fetches++ {
		before := o.asked.Load()
		got, err := fetch(ctx, client, s.url+urlPath(size))
		switch {
		case err != nil && fetches > 1 && ctx.Err() != nil:
			return fmt.Errorf("%s: %s does not become a hit: %w", s.name, urlPath(size), err)
		case err != nil:
			return fmt.Errorf("%s: warming: %w", s.name, err)
		case !bytes.Equal(got, b[size]):
			return fmt.Errorf("%s: wrong body for %s: %d bytes, want %d", s.name, urlPath(size), len(got), size)
		case fetches > 1 && o.asked.Load() == before:
			return nil
		}
	}
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
