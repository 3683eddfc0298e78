// N ranks as N threads, for tests of communicators.
//
//   Together({.backend = "gloo", .ranks = 4}, [](Communicator& communicator) {
//     EXPECT_TRUE(communicator.Barrier({}).ok());
//   });
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_RANKS_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_RANKS_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

struct RanksOptions {
  std::string backend;
  int ranks = 2;
  // Makes a rank's communicator, where that is no backend's; null: it is.
  absl::StatusOr<std::unique_ptr<Communicator>> (*create)(
      const CommunicatorSeat& seat) = nullptr;
  // Whether calls let the members meet on the host first, where they can.
  bool meet = false;
  // Whether narrow sums are rounded once.
  bool rounds_once = true;
  // Whether reduces go over levels, of which each sends its pieces again.
  bool reduces_over_levels = false;
  // Whether sums go whole to place 0 of each level and come back: ranks send
  // unlike bytes.
  bool sums_up_a_tree = false;
  // Of what sizes the levels are over which all-to-alls of even blocks go;
  // none: straight to each rank.
  std::vector<int> exchange_levels = {};
  // Whether buffers go in pieces, which are uneven where numbers are few.
  bool in_pieces = false;
  // How many times longer members wait for an absent one, where they ask each
  // other which it is before they say so.
  int patience = 1;
  // Makes the device of a rank, where the communicator is for one: buffers are
  // then moved there and back (on_device.h). Empty: in host memory.
  std::unique_ptr<Device> (*new_device)(int index) = nullptr;
  // Says why this machine cannot run `ranks` ranks, whose tests are then
  // skipped; empty: it can.
  std::string (*why_not)(int ranks) = nullptr;

  friend std::ostream& operator<<(std::ostream& out, const RanksOptions& o) {
    return out << o.ranks << " ranks on " << o.backend;
  }
};

// The global rank of member `index` in these tests: 7, 10, 13, ..., so that
// nobody takes an index for a rank.
int GlobalRank(int index);

// Group "test-group" of that many members.
CommunicatorSeat TestSeat(int ranks, int index, KeyValueStore* store);

// Makes the device of the rank, if it is to have one, and names it to the seat.
std::unique_ptr<Device> SeatDevice(const RanksOptions& options, int index,
                                   CommunicatorSeat& seat);

// By `create`, or by the backend's name.
absl::StatusOr<std::unique_ptr<Communicator>> CreateFor(
    const RanksOptions& options, const CommunicatorSeat& seat);

// Runs `body` once on each rank, with its communicator, and joins the threads.
// TogetherOwning lets the body destroy its communicator.
void Together(const RanksOptions& options,
              const std::function<void(Communicator&)>& body);
void TogetherOwning(
    const RanksOptions& options,
    const std::function<void(std::unique_ptr<Communicator>)>& body);

// Runs body(0) ... body(count - 1) on as many threads and joins them.
void OnThreads(int count, const std::function<void(int)>& body);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_RANKS_H_
