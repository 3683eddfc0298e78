#include "tests/worker/collective/gloo/shared_store.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "absl/time/clock.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

void* SharedMemory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace

SharedStore::SharedStore()
    : shared_(new (SharedMemory(sizeof(Shared))) Shared) {
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared_->mutex, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared_->changed, &condition);
}

SharedStore::~SharedStore() { munmap(shared_, sizeof(Shared)); }

const SharedStore::Entry* SharedStore::Find(absl::string_view key) const {
  for (int i = 0; i < shared_->count; ++i) {
    const Entry& entry = shared_->entries[i];
    if (absl::string_view(entry.key, entry.key_bytes) == key) return &entry;
  }
  return nullptr;
}

absl::Status SharedStore::Set(absl::string_view key, absl::string_view value) {
  pthread_mutex_lock(&shared_->mutex);
  CHECK_LT(shared_->count, kEntriesMax);
  Entry& entry = shared_->entries[shared_->count++];
  CHECK(key.size() <= sizeof(entry.key) && value.size() <= sizeof(entry.value));
  entry.key_bytes = key.copy(entry.key, key.size());
  entry.value_bytes = value.copy(entry.value, value.size());
  pthread_cond_broadcast(&shared_->changed);
  pthread_mutex_unlock(&shared_->mutex);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SharedStore::Get(absl::string_view key,
                                             absl::Duration timeout) {
  const timespec deadline = absl::ToTimespec(absl::Now() + timeout);
  pthread_mutex_lock(&shared_->mutex);
  const Entry* found = Find(key);
  int error = 0;
  while (found == nullptr && error == 0) {
    error =
        pthread_cond_timedwait(&shared_->changed, &shared_->mutex, &deadline);
    found = Find(key);
  }
  std::string value;
  if (found != nullptr) value.assign(found->value, found->value_bytes);
  pthread_mutex_unlock(&shared_->mutex);
  if (found == nullptr) return absl::DeadlineExceededError("not set");
  return value;
}

}  // namespace troupe
