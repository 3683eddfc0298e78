// How the members of a group are: which are dead, have left or gave up, and
// which is to blame where a wait does not end. A rank that goes leaves its last
// words in its MemberState, so that all name the same culprit; and where its
// process ends without any, the kernel tells (pidfd).
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MEMBERS_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MEMBERS_H_

#include <poll.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collective/shared_memory/segment_map.h"
#include "worker/collective/verdict.h"

namespace troupe {

// Abort from any thread, all else from one at a time.
class Members {
 public:
  // REQUIRES: all members have set MemberState::process and live. Borrows
  // `map`.
  Members(const SegmentMap& map, int rank);
  // Takes leave, where nothing else was said.
  ~Members();
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // Whether waiting for `missing`, of which the first is furthest behind, may
  // go on; if not, why, and the others are told. REQUIRES one or more. `came`
  // says whether the wait has ended meanwhile: a rank that leaves after its
  // part is not to blame.
  Verdict Look(absl::Span<const int> missing, absl::Time deadline,
               absl::FunctionRef<bool()> came);
  // Whether the group is broken already, as far as its members said.
  Verdict Broken() const;

  // This rank goes: its peers are told, and those that sleep wake up.
  void Abort(const absl::Status& why) {
    Say(MemberState::kAborted, rank_, why.message());
  }

 private:
  void Say(MemberState::Notice notice, int about, absl::string_view text);
  bool IsDead(int peer);
  bool HasLeft(int peer) const;
  Verdict Lost(int peer) const;
  int EndOfChain(int peer) const;

  const SegmentMap& map_;
  const int rank_;
  std::vector<pollfd> processes_;  // by rank; -1 where it is this process
  absl::Mutex mutex_;
  bool said_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_MEMBERS_H_
