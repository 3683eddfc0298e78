#include "worker/collective/levels.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/plan/layout.h"
#include "proto/plan/way_bytes.h"
#include "proto/plan/ways.h"
#include "worker/collective/level_lanes.h"
#include "worker/collective/level_pieces.h"
#include "worker/collective/level_steps.h"

namespace troupe {
namespace {

constexpr int kTreeRoot = 0;  // of what an all-reduce reduces on a level

// Carriers, one for each group of the name, may be many.
Group LevelsAndWays(const Group& group) {
  Group without;
  *without.mutable_levels() = group.levels();
  *without.mutable_ways() = group.ways();
  return without;
}

class LevelsCommunicator final : public Communicator {
 public:
  LevelsCommunicator(const Group& group, LevelParts parts,
                     std::shared_ptr<Watch> watch)
      : Communicator(parts.flat->group(), parts.flat->rank()),
        plan_(LevelsAndWays(group)),
        steps_(plan_, std::move(parts), std::move(watch)),
        flat_(&steps_.flat()) {
    for (const Group::Way& way : plan_.ways()) {
      orders_[&way] = PackedOrdersOf(plan_, way, size());
    }
  }

  uint64_t sent_bytes() const override { return steps_.sent_bytes(); }
  bool SeesFailure() override { return flat_->SeesFailure(); }

 private:
  using Options = CommOptions;

  static Options OptionsOf(const Call& call) {
    return {.name = std::string(call.name),
            .timeout = call.deadline - SteadyNow(),
            .meet = call.meet};
  }

  template <typename Execute>
  absl::Status InSteps(const Group::Way& way, const LaneOrder& order,
                       const Call& call, const Execute& execute) {
    return steps_.Run(way, order,
                      {.name = std::string(call.name),
                       .start = call.start,
                       .deadline = call.deadline,
                       .meet = call.meet},
                      execute);
  }

  static BlockRows RowsOf(const CommBlocks& blocks) {
    return {.elements = blocks.whole.elements,
            .row_elements = blocks.row_elements};
  }

  LaneOrder OrderFor(const Group::Way& way, int64_t elements,
                     DType element) const {
    return OrderOf(way, PiecesOf(way, size(),
                                 {.elements = elements,
                                  .element_bytes =
                                      static_cast<int>(DTypeBytes(element))}));
  }

  int PlaceOf(int member, int level) const {
    return PlaceOn(plan_.levels(level), member);
  }

  absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                           const Call& call) override {
    const Group::Way* const way = WayFor(ALL_REDUCE, data.whole);
    if (way == nullptr) {
      return flat_->AllReduce(data.whole, op, OptionsOf(call));
    }
    const CommBuffer& whole = data.whole;
    const LaneOrder order = OrderFor(*way, whole.elements, whole.element);
    std::vector<Reduced> pieces(order.at_once);
    return InSteps(*way, order, call, [&](const PieceStep& at) {
      Reduced& piece = pieces[at.piece % order.at_once];
      if (at.index == 0) piece = {.part = PieceOf(whole, order, at.piece)};
      return ReduceStep(at, op, TakesPartIn(*way, at.index, kTreeRoot), piece);
    });
  }

  bool TakesPartIn(const Group::Way& way, int step, int root) const {
    return TakesPart(plan_, way, rank(), {.step = step, .root = root});
  }

  // A piece of an all-reduce.
  struct Reduced {
    CommBuffer part;                      // that this rank has of it
    std::vector<CommBuffer> wholes = {};  // that parts were cut from
    // Of a reduce: this rank is the root on all levels that are done.
    bool needed = true;
  };

  // A member that takes no part in a step has its view of the piece as the
  // others have.
  static absl::Status ReduceStep(const PieceStep& at, ReduceOp op,
                                 bool takes_part, Reduced& piece) {
    Communicator& level = at.level;
    CommBuffer before = piece.part;
    if (at.step.collective() == REDUCE_SCATTER) {
      piece.wholes.push_back(piece.part);
      piece.part = level.Block(piece.part, level.rank());
    }
    if (at.step.collective() == ALL_GATHER) {
      piece.part = piece.wholes.back();
      piece.wholes.pop_back();
    }
    if (!takes_part) return absl::OkStatus();
    switch (at.step.collective()) {
      case REDUCE_SCATTER:
        return level.ReduceScatter({.send = before, .receive = piece.part}, op,
                                   at.options);
      case ALL_GATHER:
        return level.AllGather({.send = before, .receive = piece.part},
                               at.options);
      case REDUCE:
        return level.Reduce(piece.part, kTreeRoot, op, at.options);
      case BROADCAST:
        return level.Broadcast(piece.part, kTreeRoot, at.options);
      default:
        return level.AllReduce(piece.part, op, at.options);
    }
  }

  // The steps of an all-reduce, with parts that come together at the root.
  absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                        const Call& call) override {
    const Group::Way* const way = WayFor(ALL_REDUCE, data.whole);
    if (way == nullptr) {
      return flat_->Reduce(data.whole, root, op, OptionsOf(call));
    }
    // Up a tree all wait until the sum is there: a member that had done its
    // part and gone on would be missed by those that look for the one to blame.
    if (HasTree(*way)) return DoAllReduce(data, op, call);
    const CommBuffer& whole = data.whole;
    const LaneOrder order = OrderFor(*way, whole.elements, whole.element);
    std::vector<Reduced> pieces(order.at_once);
    return InSteps(*way, order, call, [&](const PieceStep& at) {
      Reduced& piece = pieces[at.piece % order.at_once];
      if (at.index == 0) piece = {.part = PieceOf(whole, order, at.piece)};
      if (at.step.collective() == REDUCE_SCATTER) {
        return ReduceStep(at, op, /*takes_part=*/true, piece);
      }
      return ReduceTo(PlaceOf(root, at.step.level()), at, op, piece);
    });
  }

  static bool HasTree(const Group::Way& way) {
    return std::any_of(
        way.steps().begin(), way.steps().end(),
        [](const Group::Step& step) { return step.collective() == REDUCE; });
  }

  static absl::Status ReduceTo(int root, const PieceStep& at, ReduceOp op,
                               Reduced& piece) {
    if (at.step.collective() == ALL_GATHER) {
      piece.part = piece.wholes.back();
      piece.wholes.pop_back();
      if (!piece.needed) return absl::OkStatus();
      RETURN_IF_ERROR(GatherAt(root, piece.part, at.level, at.options));
    } else {
      RETURN_IF_ERROR(at.level.Reduce(piece.part, root, op, at.options));
    }
    piece.needed = piece.needed && at.level.rank() == root;
    return absl::OkStatus();
  }

  static absl::Status GatherAt(int root, const CommBuffer& whole,
                               Communicator& level, const Options& options) {
    if (level.rank() != root) {
      return level.Send(level.Block(whole, level.rank()), root, options);
    }
    for (int member = 0; member < level.size(); ++member) {
      if (member == root) continue;
      RETURN_IF_ERROR(level.Recv(level.Block(whole, member), member, options));
    }
    return absl::OkStatus();
  }

  absl::Status DoReduceScatter(const CommBlocks& send,
                               const CommBuffer& receive, ReduceOp op,
                               const Call& call) override {
    const Group::Way* const way = WayFor(REDUCE_SCATTER, send.whole);
    const BlockExtent shape = ExtentOf(RowsOf(send), size());
    if (way == nullptr || shape.even == 0 || send.given) {
      return flat_->ReduceScatter({.send = send.whole,
                                   .receive = receive,
                                   .row_elements = send.row_elements,
                                   .ranges = send.given_ranges()},
                                  op, OptionsOf(call));
    }
    const LaneOrder order =
        OrderFor(*way, shape.even * size(), receive.element);
    const PackedOrder& packed = orders_.at(way).front();
    const int64_t longest = order.RangeOf(0, shape.even).size();
    const CommBuffer memory =
        pieces_.For(order.at_once * size() * longest, receive.element);
    std::vector<CommBuffer> parts(order.at_once);
    RETURN_IF_ERROR(
        InSteps(*way, order, call, [&](const PieceStep& at) -> absl::Status {
          const int64_t place = at.piece % order.at_once;
          const Range range = order.RangeOf(at.piece, shape.even);
          CommBuffer& part = parts[place];
          if (at.index == 0) {
            part = PackedBlock(memory, place, size() * longest)
                       .Slice(0, size() * range.size());
            for (int member = 0; member < size(); ++member) {
              CopyElements(send.Of(member).Slice(range.begin, range.end),
                           PackedBlock(part, packed[member], range.size()));
            }
          }
          const CommBuffer whole = part;
          part = at.level.Block(whole, at.level.rank());
          RETURN_IF_ERROR(at.level.ReduceScatter(
              {.send = whole, .receive = part}, op, at.options));
          if (at.index == way->steps_size() - 1) {
            CopyElements(part, receive.Slice(range.begin, range.end));
          }
          return absl::OkStatus();
        }));
    return ScatterRest(send, shape, receive, op, call);
  }

  // Rows that only the first blocks have: each has one more.
  absl::Status ScatterRest(const CommBlocks& send, const BlockExtent& shape,
                           const CommBuffer& receive, ReduceOp op,
                           const Call& call) {
    return ForRest(send, shape, [&](int64_t begin, int64_t end) {
      const CommBuffer rows =
          pieces_.For(shape.longer * (end - begin), receive.element);
      for (int member = 0; member < shape.longer; ++member) {
        CopyElements(send.Of(member).Slice(begin, end),
                     PackedBlock(rows, member, end - begin));
      }
      const CommBuffer own = flat_->Block(rows, rank(), end - begin);
      RETURN_IF_ERROR(flat_->ReduceScatter(
          {.send = rows, .receive = own, .row_elements = end - begin}, op,
          OptionsOf(call)));
      if (own.elements > 0) CopyElements(own, receive.Slice(begin, end));
      return absl::OkStatus();
    });
  }

  template <typename Move>
  absl::Status ForRest(const CommBlocks& blocks, const BlockExtent& shape,
                       const Move& move) {
    if (shape.longer == 0) return absl::OkStatus();
    const int64_t all = shape.even + blocks.row_elements;
    const int64_t most = ElementsAtATime(shape.longer, blocks.whole.element);
    for (int64_t begin = shape.even; begin < all; begin += most) {
      RETURN_IF_ERROR(move(begin, std::min(begin + most, all)));
    }
    return absl::OkStatus();
  }

  absl::Status DoAllGather(const CommBuffer& send, const CommBlocks& receive,
                           const Call& call) override {
    const Group::Way* const way = WayFor(ALL_GATHER, receive.whole);
    const BlockExtent shape = ExtentOf(RowsOf(receive), size());
    if (way == nullptr || shape.even == 0 || receive.given) {
      return flat_->AllGather({.send = send,
                               .receive = receive.whole,
                               .row_elements = receive.row_elements,
                               .ranges = receive.given_ranges()},
                              OptionsOf(call));
    }
    const PackedOrder& places = orders_.at(way).front();
    const LaneOrder order = OrderFor(*way, shape.even * size(), send.element);
    const int64_t longest = order.RangeOf(0, shape.even).size();
    const CommBuffer memory =
        pieces_.For(order.at_once * size() * longest, send.element);
    std::vector<int64_t> blocks(order.at_once);  // that are there, around this
                                                 // rank's
    RETURN_IF_ERROR(
        InSteps(*way, order, call, [&](const PieceStep& at) -> absl::Status {
          const int64_t place = at.piece % order.at_once;
          const Range range = order.RangeOf(at.piece, shape.even);
          const CommBuffer packed =
              PackedBlock(memory, place, size() * longest);
          if (at.index == 0) {
            blocks[place] = 1;
            CopyElements(send.Slice(range.begin, range.end),
                         PackedBlock(packed, places[rank()], range.size()));
          }
          blocks[place] *= at.level.size();
          const CommBuffer whole =
              PackedBlock(packed, places[rank()] / blocks[place],
                          blocks[place] * range.size());
          RETURN_IF_ERROR(at.level.AllGather(
              {.send = at.level.Block(whole, at.level.rank()),
               .receive = whole},
              at.options));
          if (at.index < way->steps_size() - 1) return absl::OkStatus();
          for (int member = 0; member < size(); ++member) {
            CopyElements(PackedBlock(packed, places[member], range.size()),
                         receive.Of(member).Slice(range.begin, range.end));
          }
          return absl::OkStatus();
        }));
    return GatherRest(send, receive, shape, call);
  }

  absl::Status GatherRest(const CommBuffer& send, const CommBlocks& receive,
                          const BlockExtent& shape, const Call& call) {
    return ForRest(receive, shape, [&](int64_t begin, int64_t end) {
      const CommBuffer rows =
          pieces_.For(shape.longer * (end - begin), send.element);
      const CommBuffer own = flat_->Block(rows, rank(), end - begin);
      if (own.elements > 0) CopyElements(send.Slice(begin, end), own);
      RETURN_IF_ERROR(flat_->AllGather(
          {.send = own, .receive = rows, .row_elements = end - begin},
          OptionsOf(call)));
      for (int member = 0; member < shape.longer; ++member) {
        CopyElements(PackedBlock(rows, member, end - begin),
                     receive.Of(member).Slice(begin, end));
      }
      return absl::OkStatus();
    });
  }

  absl::Status DoBroadcast(CommBuffer data, int root,
                           const Call& call) override {
    const Group::Way* const way = WayFor(BROADCAST, data);
    if (way == nullptr) return flat_->Broadcast(data, root, OptionsOf(call));
    const LaneOrder order = OrderFor(*way, data.elements, data.element);
    return InSteps(*way, order, call, [&](const PieceStep& at) -> absl::Status {
      if (!TakesPartIn(*way, at.index, root)) return absl::OkStatus();
      return at.level.Broadcast(PieceOf(data, order, at.piece),
                                PlaceOf(root, at.step.level()), at.options);
    });
  }

  // Only blocks that all members know to be even: of others nobody but their
  // two ends knows the size.
  absl::Status DoAllToAll(const CommBlocks& send, const CommBlocks& receive,
                          const Call& call) override {
    const Group::Way* const way =
        send.even ? WayFor(ALL_TO_ALL, send.whole) : nullptr;
    if (way == nullptr) {
      return flat_->AllToAll({.send = send.whole,
                              .receive = receive.whole,
                              .send_ranges = send.ranges,
                              .receive_ranges = receive.ranges},
                             OptionsOf(call));
    }
    const int64_t block = send.whole.elements / size();
    const DType element = send.whole.element;
    const LaneOrder order = OrderFor(*way, send.whole.elements, element);
    const int64_t most = size() * order.RangeOf(0, block).size();
    const CommBuffer memory = pieces_.For(2 * order.at_once * most, element);
    return InSteps(*way, order, call, [&](const PieceStep& at) {
      const int64_t place = 2 * (at.piece % order.at_once);
      const Range range = order.RangeOf(at.piece, block);
      const auto part_of = [&](int64_t index) {
        return PackedBlock(memory, index, most).Slice(0, size() * range.size());
      };
      return ExchangeStep(at, orders_.at(way),
                          {.send = send,
                           .receive = receive,
                           .out = part_of(place),
                           .in = part_of(place + 1),
                           .range = range});
    });
  }

  // A piece of an all-to-all. A member has as many blocks as there are members
  // at any time. A block's number has, on the levels that are done, the places
  // of the member that it comes from, and on the others those of the one that
  // it goes to.
  struct Exchanged {
    const CommBlocks& send;
    const CommBlocks& receive;
    CommBuffer out;  // packed
    CommBuffer in;
    Range range;  // of each block
  };
  absl::Status ExchangeStep(const PieceStep& at,
                            const std::vector<PackedOrder>& orders,
                            const Exchanged& piece) {
    const int64_t length = piece.range.size();
    const PackedOrder& now = orders[at.index];
    for (int number = 0; number < size(); ++number) {
      const CommBuffer from =
          at.index == 0
              ? piece.send.Of(number).Slice(piece.range.begin, piece.range.end)
              : PackedBlock(piece.in, orders[at.index - 1][number], length);
      CopyElements(from, PackedBlock(piece.out, now[number], length));
    }
    RETURN_IF_ERROR(at.level.AllToAll({.send = piece.out, .receive = piece.in},
                                      at.options));
    if (at.index + 1 < static_cast<int>(orders.size())) return absl::OkStatus();
    for (int number = 0; number < size(); ++number) {
      CopyElements(
          PackedBlock(piece.in, now[number], length),
          piece.receive.Of(number).Slice(piece.range.begin, piece.range.end));
    }
    return absl::OkStatus();
  }

  absl::Status DoSend(CommBuffer data, int peer, const Call& call) override {
    return flat_->Send(data, peer, OptionsOf(call));
  }
  absl::Status DoRecv(CommBuffer data, int peer, const Call& call) override {
    return flat_->Recv(data, peer, OptionsOf(call));
  }
  absl::Status DoShift(const ShiftBuffers& buffers, const Call& call) override {
    return flat_->Shift(buffers, OptionsOf(call));
  }
  absl::Status DoBarrier(const Call& call) override {
    return flat_->Barrier(OptionsOf(call));
  }

  void DoAbort(const absl::Status& why) override { steps_.Abort(why); }

  static CommBuffer PieceOf(const CommBuffer& whole, const LaneOrder& order,
                            int64_t piece) {
    const Range range = order.RangeOf(piece, whole.elements);
    return whole.Slice(range.begin, range.end);
  }

  const Group::Way* WayFor(Collective collective,
                           const CommBuffer& whole) const {
    return WayOf(plan_, collective, static_cast<int64_t>(whole.bytes()));
  }

  const Group plan_;
  std::map<const Group::Way*, std::vector<PackedOrder>> orders_;
  LevelSteps steps_;
  Communicator* const flat_;
  PieceMemory pieces_;
};

}  // namespace

std::unique_ptr<Communicator> NewLevelsCommunicator(
    const Group& group, LevelParts parts, std::shared_ptr<Watch> watch) {
  return std::make_unique<LevelsCommunicator>(group, std::move(parts),
                                              std::move(watch));
}

}  // namespace troupe
