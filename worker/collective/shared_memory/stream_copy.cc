#include "worker/collective/shared_memory/stream_copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe {
namespace {

// Whole lines only; returns how many bytes it copied.
size_t StreamLines(char* to, const char* from, size_t bytes) {
  size_t done = 0;
#if defined(__x86_64__)
  for (; done + 64 <= bytes; done += 64) {
    __m128i line[4];
    std::memcpy(line, from + done, sizeof(line));
    for (int i = 0; i < 4; ++i) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done) + i, line[i]);
    }
  }
  _mm_sfence();
#endif
  return done;
}

}  // namespace

void StreamCopy(void* to, const void* from, size_t bytes) {
  char* const out = static_cast<char*>(to);
  const char* const in = static_cast<const char*>(from);
  const size_t done = StreamLines(out, in, bytes);
  if (done < bytes) std::memcpy(out + done, in + done, bytes - done);
}

}  // namespace troupe
