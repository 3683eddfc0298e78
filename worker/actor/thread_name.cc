#include "worker/actor/thread_name.h"

#include <pthread.h>

#include <string>

namespace troupe {

void NameThisThread(absl::string_view name) {
  constexpr size_t kKernelKeeps = 15;
  pthread_setname_np(pthread_self(),
                     std::string(name.substr(0, kKernelKeeps)).c_str());
}

}  // namespace troupe
