// How the ranks of a job agree where they start, through the rendezvous store:
// rank 0 chooses, all are told and do what it chose, each says what came of it,
// and rank 0, which compares, tells all whether they begin. Where what it chose
// was damaged for one of them, it chooses again: the next round. So no rank
// looks for itself, and none goes on while another still reads.
//
//   StartAgreement agreement({.rank = 3, .ranks = 8, .name = "w3"}, store);
//   do {
//     ASSIGN_OR_RETURN(std::string choice, agreement.Choose(mine));
//     ... loads it ...
//     ASSIGN_OR_RETURN(begins, agreement.Begin(outcome));
//   } while (!begins);
//
// A rank sets a key in each round and gets two; rank 0 gets one of each. The
// waits have no deadline of their own: what ranks read may take long, and those
// that see a rank give up say so (the store is aborted then).
#ifndef TROUPE_WORKER_ENGINE_START_AGREEMENT_H_
#define TROUPE_WORKER_ENGINE_START_AGREEMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/collective/key_value_store.h"

namespace troupe {

struct StartPlace {
  int rank = 0;
  int ranks = 1;
  std::string name;  // of its worker, for messages
};

// What came of the choice for a rank.
struct StartOutcome {
  std::string damage;   // not empty: it cannot start with it
  int64_t step = 0;     // after which it starts
  std::string content;  // the same for all that loaded the same
  std::string data;     // what its tokens are; empty: it reads none
};

class StartAgreement {
 public:
  // Borrows the store, which a job of one rank does not use.
  StartAgreement(const StartPlace& place, KeyValueStore& store)
      : place_(place), store_(store) {}

  // Opens a round: rank 0's `mine` for all ranks, without the `mine` of the
  // others. Errors: those of the store.
  absl::StatusOr<std::string> Choose(const std::string& mine);

  // Closes it. True: all have loaded the same. False: it was damaged for one of
  // them, whose words damage() has. FailedPrecondition, on rank 0: a rank has
  // loaded something else than rank 0, or has other tokens than another; both
  // are named. Errors of the store.
  absl::StatusOr<bool> Begin(const StartOutcome& mine);
  const std::string& damage() const { return damage_; }

 private:
  std::string Key(const std::string& what) const;
  absl::Status Compare(const StartOutcome& mine);

  const StartPlace place_;
  KeyValueStore& store_;
  int round_ = -1;
  std::string damage_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_START_AGREEMENT_H_
