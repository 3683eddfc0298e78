#include "tests/style/precompiled.h"

namespace troupe {

bool LibrariesTakePrecompiledHeaders() {
#if defined(__clang__) || defined(TROUPE_PRECOMPILED)
  return true;
#else
  return false;
#endif
}

}  // namespace troupe
