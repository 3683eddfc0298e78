// What is known of each byte of a piece of memory, where neighbours most often
// have the same: by range, cut where somebody uses a part of one.
#ifndef TROUPE_PROTO_PLAN_BYTE_MAP_H_
#define TROUPE_PROTO_PLAN_BYTE_MAP_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "proto/plan/operand.h"

namespace troupe {

// A byte of which nothing was said has Value{}.
template <typename Value>
class ByteMap {
 public:
  struct Piece {
    int64_t end = 0;
    Value value;
  };
  using Pieces = std::map<int64_t, Piece>;  // by first byte; none overlap

  class Range {
   public:
    Range(typename Pieces::iterator begin, typename Pieces::iterator end)
        : begin_(begin), end_(end) {}
    typename Pieces::iterator begin() const { return begin_; }
    typename Pieces::iterator end() const { return end_; }

   private:
    typename Pieces::iterator begin_;
    typename Pieces::iterator end_;
  };

  const Pieces& pieces() const { return pieces_; }

  // The pieces of exactly these bytes, ascending and without gaps, to look at
  // and to change. Valid until the next call. REQUIRES bytes.
  Range At(const BytesUsed& bytes) {
    // As most often, just what somebody said something of before.
    const auto found = pieces_.find(bytes.begin);
    if (found != pieces_.end() && found->second.end == bytes.end) {
      return {found, std::next(found)};
    }
    const auto end = CutAt(bytes.end);
    auto next = CutAt(bytes.begin);
    for (int64_t byte = bytes.begin; byte < bytes.end; ++next) {
      if (next == end || next->first > byte) {
        const int64_t gap_end = next == end ? bytes.end : next->first;
        next = pieces_.insert(next, {byte, Piece{gap_end, Value{}}});
      }
      byte = next->second.end;
    }
    return {pieces_.find(bytes.begin), end};
  }

  // All of these bytes have one value from now on, at first that of the first
  // one: to be changed in place, so that it keeps the memory that it has.
  Value& Join(const BytesUsed& bytes) {
    const Range range = At(bytes);
    range.begin()->second.end = bytes.end;
    pieces_.erase(std::next(range.begin()), range.end());
    return range.begin()->second.value;
  }
  void Set(const BytesUsed& bytes, Value value) {
    Join(bytes) = std::move(value);
  }

 private:
  // The first piece at or behind the byte, which none goes across any more.
  typename Pieces::iterator CutAt(int64_t byte) {
    const auto next = pieces_.lower_bound(byte);
    if (next == pieces_.begin()) return next;
    Piece& before = std::prev(next)->second;
    if (before.end <= byte) return next;
    const auto cut =
        pieces_.insert(next, {byte, Piece{before.end, before.value}});
    before.end = byte;
    return cut;
  }

  Pieces pieces_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_BYTE_MAP_H_
