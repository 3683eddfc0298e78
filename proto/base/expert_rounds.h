// Which rows of tokens ranks exchange with the ranks that have their experts,
// round by round.
//
// Experts are cut over ranks in order: rank d of n has experts [d e / n,
// (d + 1) e / n). Each rank has sorted its rows by expert, and so by
// destination; all ranks know all offsets: row offsets[s][i] of rank s is the
// first of expert i.
//
// The rows that rank d receives are numbered by source, then expert, then the
// order at the source. Round r takes the numbers [r R, (r + 1) R), R being what
// the receive buffer holds, and number i lies in row i - r R of it. So what one
// rank sends to another in a round are consecutive rows at both ends:
//
//   rank 0's rows   | for rank 0 | for rank 1              |
//                                |--round 0--|---round 1---|
//   rank 1 receives |of rank 0 ..| of rank 1 ..            |
//
// Behind the exchange a rank groups what it has received by expert, then source
// ("grouped" rows), and computes.
//
// All of it follows from the offsets alone, by the same arithmetic on every
// rank, so ranks agree without a message. The simulator, the worker's exchange
// and the kernels of ops/regroup.h use these functions; they are constexpr, so
// that GPUs do, too.
#ifndef TROUPE_PROTO_BASE_EXPERT_ROUNDS_H_
#define TROUPE_PROTO_BASE_EXPERT_ROUNDS_H_

#include <cstdint>

namespace troupe {

// Rows [begin, end). Empty where begin == end.
struct RowSpan {
  int64_t begin = 0;
  int64_t end = 0;
  constexpr int64_t size() const { return end - begin; }
  constexpr bool operator==(const RowSpan&) const = default;
};

// Borrows the offsets. REQUIRES experts that are a multiple of ranks, and of
// all functions but FaultyRank a table without fault.
class ExpertRounds {
 public:
  // `offsets` is [ranks, experts + 1].
  constexpr ExpertRounds(const int32_t* offsets, int ranks, int experts,
                         int64_t rows_max)
      : offsets_(offsets),
        ranks_(ranks),
        experts_(experts),
        rows_max_(rows_max) {}

  // The first rank whose offsets do not rise from 0 to at most `rows_of_rank`;
  // -1: there is none.
  constexpr int FaultyRank(int64_t rows_of_rank) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      bool right = Offset(rank, 0) == 0;
      for (int expert = 0; expert < experts_; ++expert) {
        right &= Offset(rank, expert) <= Offset(rank, expert + 1);
      }
      if (!right || Offset(rank, experts_) > rows_of_rank) return rank;
    }
    return -1;
  }

  constexpr int ranks() const { return ranks_; }
  constexpr int experts() const { return experts_; }
  constexpr int experts_of_rank() const { return experts_ / ranks_; }
  constexpr int64_t rows_max() const { return rows_max_; }

  // Of the rows of rank `source`, those of one expert; those for rank `to`.
  constexpr RowSpan RowsOfExpert(int source, int expert) const {
    return {Offset(source, expert), Offset(source, expert + 1)};
  }
  constexpr RowSpan RowsFor(int source, int to) const {
    return {Offset(source, to * experts_of_rank()),
            Offset(source, (to + 1) * experts_of_rank())};
  }

  // Of all rounds.
  constexpr int64_t ReceivedByRank(int rank) const {
    return NumberOfFirst(rank, ranks_);
  }
  // In which some rank receives rows: rounds 0 .. RoundCount() - 1.
  constexpr int64_t RoundCount() const {
    int64_t most = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const int64_t rounds = (ReceivedByRank(rank) + rows_max_ - 1) / rows_max_;
      if (rounds > most) most = rounds;
    }
    return most;
  }

  // What `rank` receives in a round from `source`: rows of its buffer. Sources
  // lie behind one another, from row 0 on.
  constexpr RowSpan Received(int rank, int64_t round, int source) const {
    const int64_t first = NumberOfFirst(rank, source);
    return InRound({first, first + RowsFor(source, rank).size()}, round);
  }
  // And which of the source's rows they are: as many.
  constexpr RowSpan Sent(int source, int64_t round, int to) const {
    const int64_t first = NumberOfFirst(to, source);
    const RowSpan rows = RowsFor(source, to);
    const RowSpan received = InRound({first, first + rows.size()}, round);
    const int64_t begin =
        rows.begin + received.begin + round * rows_max_ - first;
    if (received.size() == 0) return {rows.begin, rows.begin};
    return {begin, begin + received.size()};
  }

  // A block: what a rank receives in a round for one of its experts (counted
  // from its first) from one source. Where it lies in the rank's buffer,
  constexpr RowSpan ReceivedBlock(int rank, int64_t round, int own_expert,
                                  int source) const {
    const int expert = rank * experts_of_rank() + own_expert;
    const RowSpan rows = RowsOfExpert(source, expert);
    const int64_t first =
        NumberOfFirst(rank, source) + rows.begin - RowsFor(source, rank).begin;
    return InRound({first, first + rows.size()}, round);
  }
  // and, of all blocks in the order of grouped rows, the first grouped row:
  // visit(own_expert, source, received, grouped_begin).
  template <typename Visit>
  constexpr void ForBlocks(int rank, int64_t round, const Visit& visit) const {
    int64_t grouped = 0;
    for (int expert = 0; expert < experts_of_rank(); ++expert) {
      for (int source = 0; source < ranks_; ++source) {
        const RowSpan received = ReceivedBlock(rank, round, expert, source);
        visit(expert, source, received, grouped);
        grouped += received.size();
      }
    }
  }

 private:
  constexpr int64_t Offset(int source, int expert) const {
    return offsets_[int64_t{source} * (experts_ + 1) + expert];
  }
  // The number of the first row that `rank` receives from `source`.
  constexpr int64_t NumberOfFirst(int rank, int source) const {
    int64_t rows = 0;
    for (int before = 0; before < source; ++before) {
      rows += RowsFor(before, rank).size();
    }
    return rows;
  }
  // Of numbers, those of a round, as rows of the buffer.
  constexpr RowSpan InRound(const RowSpan& numbers, int64_t round) const {
    const int64_t first = round * rows_max_;
    const int64_t begin = Clipped(numbers.begin - first);
    const int64_t end = Clipped(numbers.end - first);
    return {begin, end};
  }
  constexpr int64_t Clipped(int64_t row) const {
    if (row < 0) return 0;
    return row < rows_max_ ? row : rows_max_;
  }

  const int32_t* offsets_;
  int ranks_;
  int experts_;
  int64_t rows_max_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_EXPERT_ROUNDS_H_
