// The way out, in words: what an error message tells the user to use instead.
#ifndef TROUPE_PROTO_BASE_CHOICES_H_
#define TROUPE_PROTO_BASE_CHOICES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// "a, b or c".
std::string OrList(const std::vector<std::string>& words);

// The divisors of `n` nearest to `wanted`, at most seven: "1, 2, 4 or 8".
// REQUIRES n >= 1.
std::string DivisorsText(int64_t n, int64_t wanted);

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_CHOICES_H_
