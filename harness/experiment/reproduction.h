// Whether a result that was found again confirms the earlier one.
//
// A comparison is confirmed when the new one has the same verdict and its ratio's interval overlaps
// the earlier one's; the whole is when every comparison that can be held against the other is, and
// the same arms (if any) were disqualified. Two criteria, because each alone is weak: overlap of
// two 95 % intervals misses differences that a test would find (Schenker and Gentleman, "On judging
// the significance of differences by examining the overlap between confidence intervals", The
// American Statistician 55, 2001), and equal verdicts may hide another size. Both are among the
// criteria by which replications are commonly judged (Open Science Collaboration, "Estimating the
// reproducibility of psychological science", Science 349, 2015: significance in the same direction,
// and effect inside the interval).
// Stateless; any thread.
#pragma once

#include <nlohmann/json.hpp>

namespace assay {

/// `earlier` and `now`: bodies of verdict records. The result:
///   "confirmed" bool, "sentence", "disqualified" {earlier, now: arms},
///   "comparisons": array of {a, b, kind, earlier {verdict, ratio, interval}, now {...},
///                            same_verdict, overlap, confirmed, counted, sentence}
/// A comparison that was void then, or needs the earlier ledger's baseline (regression), is shown
/// and not counted. Where none is counted nothing is confirmed.
[[nodiscard]] nlohmann::json confirm(const nlohmann::json& earlier, const nlohmann::json& now);

}  // namespace assay
