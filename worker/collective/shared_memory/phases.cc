#include "worker/collective/shared_memory/phases.h"

#include <algorithm>
#include <utility>

#include "proto/base/cores.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"

namespace troupe {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(20);
// What it costs to fall asleep and be woken, on an idle virtual core.
constexpr absl::Duration kSpinMax = absl::Microseconds(200);
constexpr absl::Duration kSpinMin = absl::Microseconds(5);
constexpr int kPausesPerGlance = 32;  // at the clock

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Phases::Phases(const SegmentMap& map, Members& members, int rank)
    : map_(map),
      members_(members),
      rank_(rank),
      state_(map.state(rank)),
      spins_(map.ranks() <= UsableCoreCount()),
      spin_(kSpinMax) {}

absl::Status Phases::Begin(absl::Time deadline, uint64_t call) {
  deadline_ = deadline;
  Verdict broken = members_.Broken();
  if (!broken.ok()) return Fail(std::move(broken));
  call_ = call;
  if (call != 0) state_.call[writes()].store(call, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Phases::Fail(Verdict verdict) {
  verdict_ = std::move(verdict);
  return absl::Status(verdict_.code, verdict_.what);
}

absl::Status Phases::Next() {
  const uint32_t phase = phase_++;
  state_.phase.store(phase_);
  Gate& gate = map_.gate();
  if (gate.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(ranks())) {
    gate.arrived.store(0);
    gate.turn.Set(phase_);
  } else if (!Spin(gate.turn, phase)) {
    RETURN_IF_ERROR(Sleep(
        gate.turn, phase, [this]() -> const auto& { return Missing(); }));
  }
  return call_ == 0 ? absl::OkStatus() : CheckCalls();
}

absl::Status Phases::Await(SharedCounter& counter, uint32_t seen,
                           absl::Span<const int> peers) {
  if (counter.Get() != seen || Spin(counter, seen)) return absl::OkStatus();
  missing_.assign(peers.begin(), peers.end());
  return Sleep(
      counter, seen, [this]() -> const auto& { return missing_; });
}

bool Phases::Spin(const SharedCounter& counter, uint32_t seen) {
  if (!spins_) return counter.Get() != seen;
  const absl::Time end = SteadyNow() + spin_;
  do {
    for (int i = 0; i < kPausesPerGlance; ++i) {
      if (counter.Get() != seen) {
        spin_ = std::min(2 * spin_, kSpinMax);
        return true;
      }
      Pause();
    }
  } while (SteadyNow() < end);
  spin_ = std::max(spin_ / 2, kSpinMin);
  return false;
}

// `missing` says which ranks have not come, whenever it is asked.
template <typename MissingRanks>
absl::Status Phases::Sleep(SharedCounter& counter, uint32_t seen,
                           const MissingRanks& missing) {
  state_.waits_at.store(map_.PlaceOf(counter));
  state_.waits_seen.store(seen);
  const auto came = [&counter, seen] { return counter.Get() != seen; };
  while (!came()) {
    const std::vector<int>& ranks = missing();
    if (!ranks.empty()) {  // else the last one has come in this moment
      state_.waits_for.store(ranks[0]);
      Verdict verdict = members_.Look(ranks, deadline_, came);
      if (!verdict.ok()) return Fail(std::move(verdict));
    }
    counter.Sleep(seen, std::min(kLook, deadline_ - SteadyNow()));
  }
  state_.waits_for.store(-1);
  return absl::OkStatus();
}

// The ranks that have not ended this phase; first, one that is furthest behind.
// Each phase is read once: they go on meanwhile.
const std::vector<int>& Phases::Missing() {
  missing_.clear();
  uint32_t furthest = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    const uint32_t behind = phase_ - map_.state(rank).phase.load();
    if (behind == 0 || behind > UINT32_MAX / 2) continue;  // here, or ahead
    missing_.push_back(rank);
    if (behind <= furthest) continue;
    furthest = behind;
    std::swap(missing_.front(), missing_.back());
  }
  return missing_;
}

absl::Status Phases::CheckCalls() {
  const uint64_t call = std::exchange(call_, 0);
  for (int rank = 0; rank < ranks(); ++rank) {
    if (map_.state(rank).call[reads()].load(std::memory_order_relaxed) !=
        call) {
      return Fail({absl::StatusCode::kInternal, rank,
                   "called another operation, or one of another size"});
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
