# latency-insert: run `gnuplot latency-insert.gp` in this directory; the data are in latency-insert.dat.
reset session
set encoding utf8
unset title
set terminal svg size 900,540 font 'sans-serif,14' background '#ffffff' noenhanced
set output 'latency-insert.svg'
set label 101 'r4-life-cycle: latency of insert' at screen 0.02, screen 0.955 font ',19' noenhanced textcolor rgb '#222222'
set label 102 'Every operation of every trial, timed phases. Lower and flatter is better.' at screen 0.02, screen 0.905 font ',13' noenhanced textcolor rgb '#5f6368'
set label 103 'r4-chunk-1 · registered · n = 2 processes a row · 2026-12-07 · record c0eb053326e2' at screen 0.98, screen 0.025 right font ',11' noenhanced textcolor rgb '#5f6368'
set border 0
set grid linetype 1 dashtype 1 linewidth 1 linecolor rgb '#e4e6e9'
set tics scale 0
set lmargin at screen 0.10
set rmargin at screen 0.97
set tmargin at screen 0.86
set bmargin at screen 0.175
set key noenhanced textcolor rgb '#222222'
set logscale x
set xrange [1:100000] noextend
set xtics ('50 %%' 2, '90 %%' 10, '99 %%' 100, '99.9 %%' 1000, '99.99 %%' 10000, '99.999 %%' 100000) scale 0 textcolor rgb '#222222'
set logscale y
set yrange [10:1e+09] noextend
set ytics ('10 ns' 10, '100 ns' 100, '1 µs' 1000, '10 µs' 10000, '100 µs' 100000, '1 ms' 1000000, '10 ms' 10000000, '100 ms' 100000000, '1 s' 1e+09) scale 0 textcolor rgb '#222222'
set xlabel 'share of operations that are no slower' textcolor rgb '#222222'
set rmargin at screen 0.77
unset key
set arrow 601 from screen 0.7850, screen 0.8450 to screen 0.8200, screen 0.8450 nohead linewidth 2.5 linecolor rgb '#d55e00'
set label 601 'lode' at screen 0.828, screen 0.8450 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 611 from screen 0.7850, screen 0.8000 to screen 0.7938, screen 0.8000 nohead linewidth 2.5 linecolor rgb '#d55e00'
set arrow 612 from screen 0.7981, screen 0.8000 to screen 0.8069, screen 0.8000 nohead linewidth 2.5 linecolor rgb '#d55e00'
set arrow 613 from screen 0.8113, screen 0.8000 to screen 0.8200, screen 0.8000 nohead linewidth 2.5 linecolor rgb '#d55e00'
set label 602 'lode-again' at screen 0.828, screen 0.8000 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 621 from screen 0.7850, screen 0.7550 to screen 0.8200, screen 0.7550 nohead linewidth 2.5 linecolor rgb '#e69f00'
set label 603 'rocksdb' at screen 0.828, screen 0.7550 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 631 from screen 0.7850, screen 0.7100 to screen 0.8200, screen 0.7100 nohead linewidth 2.5 linecolor rgb '#009e73'
set label 604 'lmdb' at screen 0.828, screen 0.7100 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 641 from screen 0.7850, screen 0.6650 to screen 0.8200, screen 0.6650 nohead linewidth 2.5 linecolor rgb '#0072b2'
set label 605 'sqlite' at screen 0.828, screen 0.6650 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 651 from screen 0.7850, screen 0.6200 to screen 0.8200, screen 0.6200 nohead linewidth 2.5 linecolor rgb '#a6a6a6'
set label 606 'null' at screen 0.828, screen 0.6200 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 661 from screen 0.7850, screen 0.5750 to screen 0.8200, screen 0.5750 nohead linewidth 2.5 linecolor rgb '#595959'
set label 607 'raw-file' at screen 0.828, screen 0.5750 left font ',13' noenhanced textcolor rgb '#222222'
plot 'latency-insert.dat' index 0 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#d55e00', \
     'latency-insert.dat' index 1 using 1:2 with lines linewidth 2.5 dashtype 2 linecolor rgb '#d55e00', \
     'latency-insert.dat' index 2 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#e69f00', \
     'latency-insert.dat' index 3 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#009e73', \
     'latency-insert.dat' index 4 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#0072b2', \
     'latency-insert.dat' index 5 using 1:2 with lines linewidth 1.5 dashtype 1 linecolor rgb '#a6a6a6', \
     'latency-insert.dat' index 6 using 1:2 with lines linewidth 1.5 dashtype 1 linecolor rgb '#595959'
unset output
reset session
set encoding utf8
unset title
set terminal pngcairo size 900,540 font 'sans,14' fontscale 0.75 background '#ffffff' noenhanced
set output 'latency-insert.png'
set label 101 'r4-life-cycle: latency of insert' at screen 0.02, screen 0.955 font ',19' noenhanced textcolor rgb '#222222'
set label 102 'Every operation of every trial, timed phases. Lower and flatter is better.' at screen 0.02, screen 0.905 font ',13' noenhanced textcolor rgb '#5f6368'
set label 103 'r4-chunk-1 · registered · n = 2 processes a row · 2026-12-07 · record c0eb053326e2' at screen 0.98, screen 0.025 right font ',11' noenhanced textcolor rgb '#5f6368'
set border 0
set grid linetype 1 dashtype 1 linewidth 1 linecolor rgb '#e4e6e9'
set tics scale 0
set lmargin at screen 0.10
set rmargin at screen 0.97
set tmargin at screen 0.86
set bmargin at screen 0.175
set key noenhanced textcolor rgb '#222222'
set logscale x
set xrange [1:100000] noextend
set xtics ('50 %%' 2, '90 %%' 10, '99 %%' 100, '99.9 %%' 1000, '99.99 %%' 10000, '99.999 %%' 100000) scale 0 textcolor rgb '#222222'
set logscale y
set yrange [10:1e+09] noextend
set ytics ('10 ns' 10, '100 ns' 100, '1 µs' 1000, '10 µs' 10000, '100 µs' 100000, '1 ms' 1000000, '10 ms' 10000000, '100 ms' 100000000, '1 s' 1e+09) scale 0 textcolor rgb '#222222'
set xlabel 'share of operations that are no slower' textcolor rgb '#222222'
set rmargin at screen 0.77
unset key
set arrow 601 from screen 0.7850, screen 0.8450 to screen 0.8200, screen 0.8450 nohead linewidth 2.5 linecolor rgb '#d55e00'
set label 601 'lode' at screen 0.828, screen 0.8450 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 611 from screen 0.7850, screen 0.8000 to screen 0.7938, screen 0.8000 nohead linewidth 2.5 linecolor rgb '#d55e00'
set arrow 612 from screen 0.7981, screen 0.8000 to screen 0.8069, screen 0.8000 nohead linewidth 2.5 linecolor rgb '#d55e00'
set arrow 613 from screen 0.8113, screen 0.8000 to screen 0.8200, screen 0.8000 nohead linewidth 2.5 linecolor rgb '#d55e00'
set label 602 'lode-again' at screen 0.828, screen 0.8000 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 621 from screen 0.7850, screen 0.7550 to screen 0.8200, screen 0.7550 nohead linewidth 2.5 linecolor rgb '#e69f00'
set label 603 'rocksdb' at screen 0.828, screen 0.7550 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 631 from screen 0.7850, screen 0.7100 to screen 0.8200, screen 0.7100 nohead linewidth 2.5 linecolor rgb '#009e73'
set label 604 'lmdb' at screen 0.828, screen 0.7100 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 641 from screen 0.7850, screen 0.6650 to screen 0.8200, screen 0.6650 nohead linewidth 2.5 linecolor rgb '#0072b2'
set label 605 'sqlite' at screen 0.828, screen 0.6650 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 651 from screen 0.7850, screen 0.6200 to screen 0.8200, screen 0.6200 nohead linewidth 2.5 linecolor rgb '#a6a6a6'
set label 606 'null' at screen 0.828, screen 0.6200 left font ',13' noenhanced textcolor rgb '#222222'
set arrow 661 from screen 0.7850, screen 0.5750 to screen 0.8200, screen 0.5750 nohead linewidth 2.5 linecolor rgb '#595959'
set label 607 'raw-file' at screen 0.828, screen 0.5750 left font ',13' noenhanced textcolor rgb '#222222'
plot 'latency-insert.dat' index 0 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#d55e00', \
     'latency-insert.dat' index 1 using 1:2 with lines linewidth 2.5 dashtype 2 linecolor rgb '#d55e00', \
     'latency-insert.dat' index 2 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#e69f00', \
     'latency-insert.dat' index 3 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#009e73', \
     'latency-insert.dat' index 4 using 1:2 with lines linewidth 2.5 dashtype 1 linecolor rgb '#0072b2', \
     'latency-insert.dat' index 5 using 1:2 with lines linewidth 1.5 dashtype 1 linecolor rgb '#a6a6a6', \
     'latency-insert.dat' index 6 using 1:2 with lines linewidth 1.5 dashtype 1 linecolor rgb '#595959'
unset output
