#include "proto/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace troupe::internal {

CheckFailure::CheckFailure(const char* file, int line, std::string what) {
  stream_ << file << ":" << line << ": check failed: " << what << " ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe::internal
