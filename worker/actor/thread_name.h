// Threads have names, so that `top -H`, gdb and perf say which one works.
#ifndef TROUPE_WORKER_ACTOR_THREAD_NAME_H_
#define TROUPE_WORKER_ACTOR_THREAD_NAME_H_

#include "absl/strings/string_view.h"

namespace troupe {

// Names the calling thread. The kernel keeps the first 15 bytes.
void NameThisThread(absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_WORKER_ACTOR_THREAD_NAME_H_
