// What an EXCHANGE instruction moves, and where that lies.
#ifndef TROUPE_PROTO_PLAN_EXCHANGE_PLACES_H_
#define TROUPE_PROTO_PLAN_EXCHANGE_PLACES_H_

#include <cstdint>

#include "proto/plan/place_unit.h"
#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Where its op finds what it turns, and where it leaves that.
struct ExchangePlaces {
  TensorPlace from;
  TensorPlace to;
  bool in_place = false;  // the two are one
  // What says how many rows of a round go where (Op.round); else nowhere.
  TensorPlace sizes;
};
ExchangePlaces PlacesOfExchange(const UnitTable& table,
                                const UnitPlaces& places,
                                const Instruction::Exchange& exchange);

// Of rows of tokens [.., .., .., columns] that ranks exchange, or of numbers of
// rows [.., .., ..]: elements of a row.
int64_t ExchangedColumns(const TensorSpec& tensor);

// Whether it takes sums in what it is given.
inline bool SumsInPlace(Collective collective) {
  return collective == REDUCE_SCATTER || collective == REDUCE;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_EXCHANGE_PLACES_H_
