// Products of blocks: the LINEARs of a unit, written as a sum of PRODUCTs
// before axes cut it (SUMMA, van de Geijn and Watts, 1997; Optimus, arXiv
// 2104.05343).
//
//   LINEAR x -> y      WEIGHT -> w
//                      PRODUCT of panel 0: x, w -> y so far
//                      PRODUCT of panel 1: x, w, y so far -> y
//
// Of q x q ranks one has a block of x, of w and of y. Panel l is the columns of
// x that place l of the axis of columns has, and the rows of w that place l of
// the axis of rows has: so each PRODUCT needs both broadcast, and a summand of
// the gradients goes back to where each came from, as the axes' cuts say
// (proto/plan/ops/product.cc).
#ifndef TROUPE_SCHEDULER_LAYOUTS_PANELS_H_
#define TROUPE_SCHEDULER_LAYOUTS_PANELS_H_

#include "proto/plan/unit_list.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

// As many panels as the axis has places. Products whose columns are a
// vocabulary stay whole: their tables are cut as those of embeddings, which may
// be the same.
void MultiplyInPanels(const AxisSpan& axis, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_PANELS_H_
