#include "worker/rank/state_copies.h"

namespace troupe {
namespace {

bool IsWhole(const KeptCopy& copy) { return copy.own() || copy.peer(); }

}  // namespace

int64_t StateCopies::Begin(int64_t step) {
  int older = static_cast<int>(step % kCount);
  const KeptCopy& other = copies_[1 - older];
  const bool other_is_older =
      IsWhole(copies_[older]) &&
      (!IsWhole(other) || other.state().step() < copies_[older].state().step());
  if (other_is_older) older = 1 - older;
  copies_[older] = KeptCopy();
  return step % kCount == older ? step : step + 1;
}

void StateCopies::End(int64_t turn, const KeptState& state, bool of_peer) {
  KeptCopy& copy = copies_[turn % kCount];
  *copy.mutable_state() = state;
  copy.set_own(true);
  copy.set_peer(of_peer);
}

void StateCopies::Brought(int copy, const KeptState& state) {
  *copies_[copy].mutable_state() = state;
  copies_[copy].set_own(true);
  copies_[copy].set_peer(false);
}

void StateCopies::DropAfter(int64_t step) {
  for (KeptCopy& copy : copies_) {
    if (IsWhole(copy) && copy.state().step() > step) copy = KeptCopy();
  }
}

int StateCopies::Find(int64_t step, bool of_peer) const {
  for (int i = 0; i < kCount; ++i) {
    const bool whole = of_peer ? copies_[i].peer() : copies_[i].own();
    if (whole && copies_[i].state().step() == step) return i;
  }
  return -1;
}

std::vector<KeptCopy> StateCopies::Whole() const {
  std::vector<KeptCopy> whole;
  for (const KeptCopy& copy : copies_) {
    if (IsWhole(copy)) whole.push_back(copy);
  }
  return whole;
}

}  // namespace troupe
