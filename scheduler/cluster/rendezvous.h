// The meeting place of a job's ranks: a small key-value store that lives as
// long as one attempt of the job. A rank sets a key once; a rank that asks for
// a key that is not there yet is answered when it comes. Communicators exchange
// their addresses through it.
#ifndef TROUPE_SCHEDULER_CLUSTER_RENDEZVOUS_H_
#define TROUPE_SCHEDULER_CLUSTER_RENDEZVOUS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "scheduler/cluster/limits.h"

namespace troupe {

class Rendezvous {
 public:
  explicit Rendezvous(const Limits& limits) : limits_(limits) {}

  // The ranks that waited for the key, each to be sent the value; setting a key
  // again replaces its value. RESOURCE_EXHAUSTED: a bound is passed.
  absl::StatusOr<std::vector<int>> Set(const std::string& key,
                                       const std::string& value);

  // Sets the key unless it is set; the value that it has then, for those that
  // waited and the one that asks. NOT_FOUND: neither it nor `behind` is set, so
  // this is not the store in which the ranks began. RESOURCE_EXHAUSTED: as
  // above.
  struct First {
    std::string value;
    std::vector<int> waited;
  };
  absl::StatusOr<First> SetFirst(const std::string& key,
                                 const std::string& value,
                                 const std::string& behind);

  // Forgets all keys that begin so.
  void Erase(const std::string& prefix);

  // The value, or null: the rank will be among those that Set returns.
  // RESOURCE_EXHAUSTED: too many wait.
  absl::StatusOr<const std::string*> Get(int rank, const std::string& key);

 private:
  const Limits limits_;
  int64_t bytes_ = 0;
  int64_t waiting_ = 0;
  absl::flat_hash_map<std::string, std::string> values_;
  absl::flat_hash_map<std::string, std::vector<int>> waiters_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RENDEZVOUS_H_
