package pool

import (
	"github.com/oxtoacart/bpool"
	"google.golang.org/grpc/mem"
)

// SlicePools returns the pools of slices in the order of the tables, bytebufferpool's first.
func SlicePools() []SlicePool {
	return append(ourSlicePools(), []SlicePool{
		{Name: baseline, Title: "sync.Pool with a cutoff", New: func(int) Slices { return &syncPool{cutoff: Cutoff} }},
		{Name: "make", Title: "make, no pool", New: func(int) Slices { return allocator{} }},
		{Name: oneLock, Title: "one mutex, bounded", New: func(int) Slices { return &oneMutex{budget: budget} }},
		{Name: "libp2p", Title: "libp2p", New: func(int) Slices { return new(libp2pSlices) }},
		{Name: "grpc", Title: "gRPC, tiers 64 B to 1 MiB", New: func(int) Slices { return &grpcSlices{newGRPCBinary()} }},
		{Name: "grpc-default", Title: "gRPC, default tiers", Global: true, New: func(int) Slices { return &grpcSlices{mem.DefaultBufferPool()} }},
		{Name: "prometheus", Title: "Prometheus", New: func(int) Slices { return newPrometheus() }},
		{Name: "bpool", Title: "bpool BytePool", New: func(size int) Slices { return &bpoolSlices{bpool.NewBytePool(bounded, size)} }},
		{Name: "mcache", Title: "bytedance mcache", Global: true, New: func(int) Slices { return mcacheSlices{} }},
		{Name: "valyala", Title: "valyala, B resized", New: func(int) Slices { return new(valyalaSlices) }},
	}...)
}

// BufferPools returns the pools of buffers in the order of the tables, bytebufferpool's first.
func BufferPools() []BufferPool {
	return append(ourBufferPools(), []BufferPool{
		{Name: baselineBuffer, Title: "pooled bytes.Buffer with a cutoff", New: func() Buffers { return &pooledBuffers{cutoff: Cutoff} }},
		{Name: "new-bytes.Buffer", Title: "new bytes.Buffer", New: func() Buffers { return newBuffers{} }},
		{Name: "valyala", Title: "valyala", New: func() Buffers { return new(valyalaBuffers) }},
		{Name: "bpool", Title: "bpool SizedBufferPool(4096)", New: func() Buffers {
			return &bpoolBuffers{bpool.NewSizedBufferPool(bounded, bpoolAlloc)}
		}},
		{Name: "libp2p", Title: "libp2p Buffer", New: func() Buffers { return new(libp2pBuffers) }},
		{Name: "grpc", Title: "gRPC BufferSlice", New: func() Buffers { return &grpcBuffers{newGRPCBinary()} }},
	}...)
}
