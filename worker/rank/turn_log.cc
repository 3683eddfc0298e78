#include "worker/rank/turn_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/served.h"

namespace troupe {
namespace {

constexpr char kOpenKey[] = "turns";

std::string PrefixOf(int64_t first) {
  return absl::StrCat(kOpenKey, "/", first, "/");
}

std::string SeenKey(int64_t first, int rank) {
  return absl::StrCat(kOpenKey, "-seen/", first, "/", rank);
}

}  // namespace

TurnLog::TurnLog(const Plan& plan, int rank, KeyValueStore& store)
    : plan_(plan),
      rank_(rank),
      place_(CoordinateOn(plan.mesh(), kReplicaAxis, rank)),
      store_(store) {}

std::string TurnLog::KeyOf(int64_t event) const {
  return absl::StrCat(PrefixOf(turns_->first()), event);
}

absl::Status TurnLog::Open(int64_t step) {
  if (turns_.has_value() && step <= turns_->last()) return absl::OkStatus();
  if (!turns_.has_value()) {
    // The same of all ranks: it says that this is the store in which they
    // began.
    RETURN_IF_ERROR(store_.Set(kOpenKey, "open"));
    behind_ = kOpenKey;
  } else {
    while (!turns_->over()) RETURN_IF_ERROR(Read().status());
    CHECK_EQ(step, turns_->last() + 1) << "a step is left out";
    RETURN_IF_ERROR(EraseBefore(step));
  }
  turns_.emplace(TurnRulesOf(plan_), step, MeetsAfter(plan_, step));
  return absl::OkStatus();
}

// A list stays until all ranks have gone on to the one behind the next: the
// first server finds that out, and erases.
absl::Status TurnLog::EraseBefore(int64_t first) {
  const int64_t last_list = turns_->first();
  RETURN_IF_ERROR(store_.Set(SeenKey(first, rank_), ""));
  if (before_.has_value()) {
    store_.Forget(PrefixOf(*before_));
    if (place_ == plan_.job().parallelism().data()) {
      for (int rank = 0; rank < MeshSize(plan_.mesh()); ++rank) {
        RETURN_IF_ERROR(
            store_.Get(SeenKey(last_list, rank), absl::InfiniteDuration())
                .status());
      }
      RETURN_IF_ERROR(store_.Erase(PrefixOf(*before_)));
      RETURN_IF_ERROR(
          store_.Erase(absl::StrCat(kOpenKey, "-seen/", *before_, "/")));
    }
  }
  before_ = last_list;
  return absl::OkStatus();
}

void TurnLog::Note(const Asked& asked) {
  pending_.stop |= asked.stop;
  pending_.save |= asked.save;
}

TurnEvent TurnLog::Request() const {
  return {.kind = TurnEvent::kAsk,
          .by = rank_,
          .stop = pending_.stop,
          .save = pending_.save};
}

absl::Status TurnLog::Apply(const TurnEvent& event) {
  behind_ = KeyOf(turns_->events());
  RETURN_IF_ERROR(turns_->Apply(event));
  if (event.kind == TurnEvent::kAsk && event.by == rank_) pending_ = {};
  return absl::OkStatus();
}

absl::StatusOr<TurnEvent> TurnLog::Append(const TurnEvent& event) {
  ASSIGN_OR_RETURN(
      const std::string there,
      store_.SetFirst(KeyOf(turns_->events()), TextOf(event), behind_));
  ASSIGN_OR_RETURN(TurnEvent next, ParseTurnEvent(there));
  RETURN_IF_ERROR(Apply(next));
  return next;
}

absl::StatusOr<TurnEvent> TurnLog::Read() {
  ASSIGN_OR_RETURN(
      const std::string there,
      store_.Get(KeyOf(turns_->events()), absl::InfiniteDuration()));
  ASSIGN_OR_RETURN(TurnEvent next, ParseTurnEvent(there));
  RETURN_IF_ERROR(Apply(next));
  return next;
}

absl::StatusOr<TurnLog::Step> TurnLog::Claim(int64_t step, const Asked& asked) {
  RETURN_IF_ERROR(Open(step));
  Note(asked);
  const TurnEvent claim = {.kind = TurnEvent::kClaim, .by = place_};
  while (turns_->claimed() < step) {
    if (pending_.stop || pending_.save) {
      RETURN_IF_ERROR(Append(Request()).status());
    } else if (turns_->Allows(claim)) {
      RETURN_IF_ERROR(Append(claim).status());
    } else {
      RETURN_IF_ERROR(Read().status());
    }
  }
  return Step{.own = turns_->ClaimOf(step).by == place_,
              .asked = AskedAfter(step)};
}

absl::Status TurnLog::Deliver(std::string sums) {
  const TurnEvent delivery = {
      .kind = TurnEvent::kDeliver, .by = place_, .sums = std::move(sums)};
  const int64_t done = turns_->done(place_);
  while (turns_->done(place_) == done) {
    if (turns_->Allows(delivery)) {
      RETURN_IF_ERROR(Append(delivery).status());
    } else {
      RETURN_IF_ERROR(Read().status());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TurnEvent> TurnLog::Next(int64_t step, const Asked& asked) {
  RETURN_IF_ERROR(Open(step));
  Note(asked);
  while (true) {
    // Where no step is left to claim, it waits for the next list.
    const bool asks =
        (pending_.stop || pending_.save) && turns_->claimed() < turns_->last();
    ASSIGN_OR_RETURN(TurnEvent event, asks ? Append(Request()) : Read());
    if (event.kind != TurnEvent::kAsk) return event;
  }
}

std::unique_ptr<TurnLog> TurnLogOf(const Plan& plan, int rank,
                                   KeyValueStore& store) {
  if (!plan.derived().takes_turns()) return nullptr;
  return std::make_unique<TurnLog>(plan, rank, store);
}

TurnLog::Asked TurnLog::AskedAfter(int64_t step) const {
  const StepTurns::Claimed& claim = turns_->ClaimOf(step);
  return {.stop = claim.stop, .save = claim.save};
}

}  // namespace troupe
