// A KeyValueStore for a process and the children that it forks afterwards, in
// memory that they share: rendezvous for tests with real processes.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_SHARED_STORE_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_SHARED_STORE_H_

#include <pthread.h>

#include <string>

#include "worker/collective/key_value_store.h"

namespace troupe {

class SharedStore final : public KeyValueStore {
 public:
  SharedStore();
  ~SharedStore() override;

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key,
                                  absl::Duration timeout) override;

 private:
  struct Entry {
    size_t key_bytes = 0;
    size_t value_bytes = 0;
    char key[64];
    char value[4096];
  };
  static constexpr int kEntriesMax = 256;
  struct Shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int count = 0;
    Entry entries[kEntriesMax];
  };
  const Entry* Find(absl::string_view key) const;

  Shared* const shared_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_SHARED_STORE_H_
