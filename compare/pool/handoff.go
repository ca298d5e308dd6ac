package pool

// handoff takes n handles in this goroutine and gives them back in another one. They travel in lots, so that the channel's
// cost is a few nanoseconds a handle; so is the cost of the calls of take and give, the same for every rival.
func handoff[H any](n int, take, give func(*H)) {
	full, empty := make(chan []H, 2), make(chan []H, 2)
	empty <- make([]H, held)
	empty <- make([]H, held)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lot := range full {
			for i := range lot {
				give(&lot[i])
			}
			empty <- lot
		}
	}()
	for n > 0 {
		lot := <-empty
		lot = lot[:min(n, held)]
		for i := range lot {
			take(&lot[i])
		}
		n -= len(lot)
		full <- lot
	}
	close(full)
	<-done
}
