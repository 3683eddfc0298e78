// Copies into memory that another core will read next.
//
// Its stores go around the caches, so that they need not first take away the
// lines that the other core has read: copy_choice.h says when that is faster.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_STREAM_COPY_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_STREAM_COPY_H_

#include <cstddef>

namespace troupe {

// As memcpy. What is stored to an atomic afterwards is seen after the copy.
// REQUIRES `to` aligned to 16 bytes.
void StreamCopy(void* to, const void* from, size_t bytes);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_STREAM_COPY_H_
