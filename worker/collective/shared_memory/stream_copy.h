// Copies into memory that another core will read next.
//
// A line that the other core has read lies in its cache too, and an ordinary
// store must first take it away there: one round trip between the cores for
// every 64 bytes. Stores that go around the caches need not ask: on the machine
// of docs/performance.md they write a slot ten times as fast, and the other
// core reads it no slower.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_STREAM_COPY_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_STREAM_COPY_H_

#include <cstddef>

namespace troupe {

// As memcpy. What is stored to an atomic afterwards is seen after the copy.
// REQUIRES `to` aligned to 16 bytes.
void StreamCopy(void* to, const void* from, size_t bytes);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_STREAM_COPY_H_
