// One rank's view of a store that counts the bytes that the rank moves.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_COUNTING_STORE_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_COUNTING_STORE_H_

#include <cstdint>
#include <string>

#include "worker/collective/key_value_store.h"

namespace troupe {

// For one thread; the store behind it may be shared.
class CountingStore final : public KeyValueStore {
 public:
  explicit CountingStore(KeyValueStore& store) : store_(store) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    bytes_set += key.size() + value.size();
    return store_.Set(key, value);
  }
  absl::StatusOr<std::string> Get(absl::string_view key,
                                  absl::Duration timeout) override {
    absl::StatusOr<std::string> value = store_.Get(key, timeout);
    if (value.ok()) bytes_fetched += key.size() + value->size();
    return value;
  }

  int64_t bytes_set = 0;
  int64_t bytes_fetched = 0;

 private:
  KeyValueStore& store_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_COUNTING_STORE_H_
