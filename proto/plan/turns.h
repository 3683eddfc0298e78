// Whose each step is, where each is one replica's (Derived.takes_turns;
// docs/parameter_servers.md). A replica claims the next step, computes its
// samples with the weights of that moment, and delivers its gradients; servers
// update the weights with what is delivered, in the order in which it comes.
//
// All that happens is a list of events, to which ranks append. Each rank reads
// it, and what it has to know follows from it alone: whose a step is, what a
// replica may do next, and which weights a gradient is of. The list begins anew
// whenever all ranks agree, which is after some steps (MeetsAfter): by then all
// that was claimed is delivered.
//
//   StepTurns turns(TurnRulesOf(plan), /*first=*/1, MeetsAfter(plan, 1));
//   if (turns.Allows(claim)) ...            // it may be appended
//   RETURN_IF_ERROR(turns.Apply(event));    // the next of the list
#ifndef TROUPE_PROTO_PLAN_TURNS_H_
#define TROUPE_PROTO_PLAN_TURNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"

namespace troupe {

struct TurnEvent {
  enum Kind {
    kClaim,    // replica `by` takes the next step, and pulls
    kDeliver,  // it has computed its step, and pushes
    kAsk,      // rank `by` asks all to stop or save after the next step claimed
  };
  Kind kind = kClaim;
  int by = 0;  // replicas count by their place on the axis "data"
  bool stop = false;
  bool save = false;
  std::string sums = {};  // kDeliver: Plan.sums, f64 behind one another
};
std::string TextOf(const TurnEvent& event);
// InvalidArgument where it is none.
absl::StatusOr<TurnEvent> ParseTurnEvent(absl::string_view text);

struct TurnRules {
  int replicas = 1;
  // No replica computes more than this number of steps more than another has
  // done; absent: any number.
  absl::optional<int> staleness;
  // The order is drawn from it; absent: as events come.
  absl::optional<int64_t> order_seed;
};
// REQUIRES derived.takes_turns.
TurnRules TurnRulesOf(const Plan& plan);

// The first step from `first` on after which all ranks agree: it is validated
// or saved, or the last, or many have gone by.
int64_t MeetsAfter(const Plan& plan, int64_t first);
inline constexpr int64_t kStepsBetweenMeetings = 500;

// Of the steps from `first` to `last`.
class StepTurns {
 public:
  StepTurns(const TurnRules& rules, int64_t first, int64_t last);

  // Whether it may be the next event: the replica is idle and a step is left,
  // and it is not too far ahead; it has a step; the seed draws it.
  bool Allows(const TurnEvent& event) const;
  // FailedPrecondition: it is not allowed.
  absl::Status Apply(const TurnEvent& event);

  int64_t events() const { return events_; }
  int64_t first() const { return first_; }
  // After which all agree; sooner than was said where a rank asks for that.
  int64_t last() const { return last_; }
  int64_t claimed() const;  // the last step; first() - 1: none
  int64_t delivered() const {
    return first_ - 1 + static_cast<int64_t>(delivered_.size());
  }
  bool over() const { return delivered() == last_; }

  // Of a step that was claimed.
  struct Claimed {
    int by = 0;
    bool stop = false;
    bool save = false;
  };
  const Claimed& ClaimOf(int64_t step) const;
  // Whose gradients the weights are updated with in a step. REQUIRES that they
  // are delivered.
  const Turn& DeliveredIn(int64_t step) const;
  // Steps that the replica has done.
  int64_t done(int replica) const { return replicas_[replica].done; }

 private:
  struct Replica {
    int64_t done = 0;
    absl::optional<Turn> has;  // what it computes
  };
  bool MayClaim(int replica) const;
  // Whether the seed draws this one among all that may come.
  bool IsDrawn(const TurnEvent& event) const;

  const TurnRules rules_;
  const int64_t first_;
  int64_t last_;
  int64_t events_ = 0;
  int64_t asks_ = 0;
  bool stop_ = false;  // asked for and not claimed with yet
  bool save_ = false;
  std::vector<Replica> replicas_;
  std::vector<Claimed> claimed_;
  std::vector<Turn> delivered_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_TURNS_H_
