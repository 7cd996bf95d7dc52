// What the figures are drawn from: plain data, no harness type.
//
// draw_figures() turns one FigureSet into pictures. Every figure NAME leaves NAME.gp (runs under
// plain gnuplot from its own directory), NAME.dat (its data), NAME.svg and NAME.png. The same
// FigureSet gives the same bytes. A figure whose data are missing is not drawn, and a note says so.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay::plots {

/// What is printed on every figure, so that a picture alone can be traced to its record.
struct Stamp {
  std::string experiment;
  std::string workload;
  std::string status;  ///< "registered" or "exploratory"
  std::string date;    ///< of the record, as 2026-01-31
  std::string hash;    ///< SHA-256 of the record; its first 12 digits are shown
  std::size_t n = 0;   ///< processes a row
  double confidence = 0.95;
  bool mixed_durability = false;
  std::string of_n = "a row";  ///< what has `n` processes
};

/// Latency against quantile, of one operation class.
struct Percentiles {
  struct Point {
    double quantile = 0.0;  ///< 0 to below 1
    double latency_ns = 0.0;
  };
  std::string operation;
  std::vector<Point> points;
};

/// One second (or whatever the slot is) of all trials of an arm.
struct Slot {
  double t_s = 0.0;
  double rate_low = 0.0, rate_median = 0.0, rate_high = 0.0;  ///< quartiles over trials, 1/s
  std::optional<double> p99_low_ns, p99_median_ns, p99_high_ns;
};

struct Arm {
  std::string name;
  std::string store;
  std::string version;
  std::string durability;  ///< with its proof: "power (declared)"
  bool reference = false;
  std::optional<double> centre, low, high;  ///< mean and interval of the metric
  std::vector<double> values;               ///< one a trial process
  std::optional<double> bytes_per_entry, write_amplification, barriers_per_operation,
      cpu_ns_per_operation;
  std::vector<Percentiles> latencies;
  std::vector<Slot> series;
};

/// One arm over the values of a swept key.
struct SweepCurve {
  struct Point {
    double x = 0.0;  ///< the value; of texts its place among them
    std::optional<double> centre, low, high;
    std::vector<double> values;  ///< one a trial process
  };
  std::string arm;
  std::string store;
  bool reference = false;
  std::vector<Point> points;  ///< by x
};

/// The metric against one swept key, everything else held still.
struct SweepCurves {
  std::string key;                 ///< what is on the x axis
  std::string held;                ///< values of the other keys: "threads=4"; empty = no other
  std::vector<std::string> words;  ///< the values in order, where they are no numbers
  std::vector<SweepCurve> curves;
  std::vector<double> not_judged = {};  ///< x of cells of which nothing may be said
};

/// What was reached for what cost, by arms that were given the same work.
struct Tradeoff {
  struct Point {
    std::string arm;
    std::string store;
    std::string cell;  ///< what is special about the point among those of its arm; may be empty
    double cost = 0.0;
    double gain = 0.0;  ///< the metric
    std::optional<double> low, high;
  };
  std::string work;  ///< "bytes=16"
  std::vector<Point> points;
};
/// All groups of one cost; a picture holds several as panels.
struct Tradeoffs {
  std::string name;  ///< for files: "space"
  std::string cost;  ///< "bytes on disk an entry"
  std::vector<Tradeoff> groups;
};

/// One experiment over its results.
struct HistoryPoint {
  std::string result;
  std::string commit;  ///< empty = not known
  std::string date;    ///< 2026-01-31
  std::string hash;    ///< of the verdict's record
  std::size_t n = 0;
  double centre = 0.0, low = 0.0, high = 0.0;
  bool changed = false;   ///< shown to lie outside the corridor of the level before
  bool accepted = false;  ///< the baseline
};
struct History {
  std::string arm;
  std::string store;
  std::string what;                  ///< "throughput", or "share of raw-file"
  double corridor = 1.1;             ///< how many times better or worse is no change yet
  std::vector<HistoryPoint> points;  ///< oldest first
};

struct FigureSet {
  Stamp stamp;
  std::string metric;     ///< "throughput"
  std::string unit;       ///< "operations/s", "ns", ...
  std::vector<Arm> arms;  ///< top row first, references last
  std::string no_curves;  ///< why an arm lacks latencies and series, where the caller knows
  bool swept = false;     ///< draw `curves` and `tradeoffs` and nothing of `arms`
  bool less_is_better = false;
  std::vector<SweepCurves> curves;
  std::vector<Tradeoffs> tradeoffs;
  std::vector<History> histories;  ///< not empty: draw them and nothing else
};

struct Drawing {
  std::string name;   ///< "throughput"
  std::string title;  ///< for people
};

struct Drawn {
  std::vector<Drawing> figures;
  std::vector<std::string> notes;  ///< what was left out, and why
};

/// Draws everything that the data allow into `directory`, which exists. Errors: environment when
/// gnuplot is missing, a file cannot be written, or gnuplot draws none of the figures. A figure
/// that it refuses is left out, with a note in its own words; once it took longer than `limit` for
/// one, the others are not tried.
[[nodiscard]] Result<Drawn> draw_figures(const FigureSet& set, const std::string& directory,
                                         std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace assay::plots
