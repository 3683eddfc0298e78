#include "proto/base/random_id.h"

#include <sys/random.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {

std::string RandomId() {
  uint64_t bits = 0;
  CHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits)) << "getrandom";
  return absl::StrCat(absl::Hex(bits, absl::kZeroPad16));
}

}  // namespace troupe
