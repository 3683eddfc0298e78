// Clients that ask without pause, each over a connection of its own: ListJobs,
// ListWorkers and DescribeJob in turn, the next as soon as one is answered.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLOOD_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLOOD_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

class Flood {
 public:
  struct Options {
    std::string scheduler;
    int clients = 100;
    int64_t job = 0;  // that is described
  };
  explicit Flood(const Options& options);
  // Waits for the answers under way.
  ~Flood();

  int64_t answered() const { return answered_; }
  int64_t refused() const { return refused_; }  // or failed

 private:
  void Ask(const Options& options, int client);

  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> answered_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_FLOOD_H_
