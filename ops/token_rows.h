// Which sequence each row of a tensor belongs to. Rows of a micro-batch are its
// sequences behind one another; a rank may have some of the rows only.
#ifndef TROUPE_OPS_TOKEN_ROWS_H_
#define TROUPE_OPS_TOKEN_ROWS_H_

#include <cstdint>

namespace troupe {

struct TokenRows {
  int64_t first = 0;   // of the micro-batch's rows, the one that is row 0 here
  int64_t tokens = 0;  // rows of each sequence; 0: all rows are of sequence 0

  int64_t Of(int64_t row) const {
    return tokens == 0 ? 0 : (first + row) / tokens;
  }
};

}  // namespace troupe

#endif  // TROUPE_OPS_TOKEN_ROWS_H_
